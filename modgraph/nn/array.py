"""Arrays that are learned, arrays that are given, and arrays that a rule moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.device import constant
from modgraph.nn.layer import Layer


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


class Constant(Layer):
    """Given numbers, the same for every example; `rank` is how many axes one example of the operand has."""

    rank: int
    sizes: Sequence[int]
    values: Sequence[float]

    def forward(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """like [..., axes of one] gives [..., *sizes], and the array for one example, for who needs it once."""
        kind = like.dtype if like.is_floating_point() else torch.get_default_dtype()
        if len(self.values) == 1:  # made in the graph: a step of a scan that is exported holds no tensors
            found = torch.full(tuple(self.sizes), self.values[0], dtype=kind, device=like.device)
        else:
            found = constant(self.values, kind, like.device)
        return for_each(found.reshape(*[1] * (like.dim() - self.rank), *self.sizes), like, self.rank)


class State(nn.Module):
    """An array that is one for the whole batch; no gradient moves it."""

    value: Tensor

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(tuple(sizes)))

    def forward(self, like: Tensor | None = None) -> Tensor:
        """The array; while it learns, as a copy, with which gradients are found when a rule has moved the state."""
        return self.value.clone() if self.training and torch.is_grad_enabled() else self.value


class NextState(nn.Module):
    """What a state becomes."""

    def forward(self, state: Tensor, value: Tensor) -> Tensor:
        return value.detach()
