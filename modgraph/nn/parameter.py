"""Learned arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


def for_each(one: Tensor, like: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """What is the same for every example, for as many as like [..., `rank` axes of one] has, and for one alone."""
    outer = like.shape[: like.dim() - rank]
    return one.expand(*outer, *one.shape[len(outer) :]), one


class Parameter:
    """The same array for every example, which a module keeps under the name of its declaration.

    `rank` is how many axes one example of the operand has.
    """

    def __init__(self, rank: int, sizes: Sequence[int]) -> None:
        self.rank = rank
        self.sizes = tuple(sizes)
        self.home: Any = None
        self.name = ""

    def kept_by(self, home: nn.Module, name: str) -> Parameter:
        """The same, in its place."""
        home.register_parameter(name, nn.Parameter(torch.zeros(self.sizes)))
        self.home, self.name = home, name
        return self

    def like(self, rank: int) -> Parameter:
        """The same array, for another operand."""
        found = Parameter(rank, self.sizes)
        found.home, found.name = self.home, self.name
        return found

    @property
    def weight(self) -> Tensor:
        found: Tensor = getattr(self.home, self.name)
        return found if found.dim() == len(self.sizes) else found.reshape(self.sizes)  # a divided number is an array

    def __call__(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """like [..., axes of one] gives [..., *sizes], and the array for one example, for who needs it once."""
        return for_each(self.weight.reshape(*[1] * (like.dim() - self.rank), *self.sizes), like, self.rank)

    def bare(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The array itself, for who broadcasts it."""
        return self.weight, self.weight

    @staticmethod
    def rows(column: Sequence[Parameter], like: Tensor) -> Tensor:
        """Those of some modules, for like [..., M, axes of one]: [..., M, *sizes]."""
        outer = like.shape[: like.dim() - column[0].rank]
        return torch.stack([each.weight for each in column]).expand(*outer, *column[0].sizes)
