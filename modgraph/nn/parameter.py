"""Learned arrays."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Parameter(nn.Module):
    """The same array for every example; `rank` is how many axes one example of the operand has."""

    def __init__(self, rank: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.rank = rank
        self.weight = nn.Parameter(torch.zeros(tuple(sizes)))

    def forward(self, like: Tensor) -> Tensor:
        """like [..., axes of one] gives [..., *sizes]."""
        outer = like.shape[: like.dim() - self.rank]
        return self.weight.expand(*outer, *self.weight.shape)
