"""Layers on tokens [..., N, D]."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from modgraph.nn.layer import Layer
from modgraph.nn.padding import cleared


class ClassToken(nn.Module):
    """Puts a learned token in front: [..., N, D] to [..., N + 1, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        token = self.weight.expand(*x.shape[:-2], 1, -1)
        return torch.cat((token, x), dim=-2)


class Position(nn.Module):
    """Adds a learned vector to each position."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(positions, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[: x.shape[-2]]


class Select(Layer):
    """One place along an axis, by default a token: [..., N, D] to [..., D]; of padding it is zero."""

    index: int
    axis: int = -2

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        if real is not None and x.shape[self.axis] == 0:
            return x.sum(self.axis)
        return cleared(x, real).select(self.axis, self.index)
