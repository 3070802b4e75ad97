"""The class token, and learned positions.

Axis letters: N tokens, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ClassToken(nn.Module):
    """Prepends a learned token: [..., N, D] to [..., N + 1, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        token = self.weight.expand(*x.shape[:-2], 1, -1)
        return torch.cat((token, x), dim=-2)


class Position(nn.Module):
    """Adds a learned vector to each token of x [..., N, D] by its position, or by given `places` [..., N]."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(positions, width))

    def forward(self, x: Tensor, places: Tensor | None = None) -> Tensor:
        return x + (self.weight[: x.shape[-2]] if places is None else self.weight[places.long()])
