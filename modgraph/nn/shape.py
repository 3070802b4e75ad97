"""Joining and cutting."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Flatten(nn.Module):
    """The last `rank` axes as one."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(-self.rank) if self.rank else x.unsqueeze(-1)


class Concat(nn.Module):
    """Joins values along the last axis."""

    def forward(self, *values: Tensor) -> Tensor:
        return torch.cat(values, dim=-1)


class Stack(nn.Module):
    """Values of `rank` axes, beside the batch's, along a new axis before these."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, *values: Tensor) -> Tensor:
        return torch.stack(values, dim=-1 - self.rank)


class Split(nn.Module):
    """Cuts the last axis into equal parts."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.chunk(self.parts, dim=-1)
