"""Learned arrays, constants, and states that a rule updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.device import constant
from modgraph.nn.grouped import Weights
from modgraph.nn.layer import Layer


def expand_over_batch(one: Tensor, like: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Expand `one` to the outer axes of `like` [..., `rank` axes of an example]; also return `one` itself."""
    outer = like.shape[: like.dim() - rank]
    return one.expand(*outer, *one.shape[len(outer) :]), one


class Parameter:
    """A learned array that all examples share. A module registers it under the name of its declaration.

    `rank` is the number of axes of one example of the operand.
    """

    def __init__(self, rank: int, sizes: Sequence[int]) -> None:
        self.rank = rank
        self.sizes = tuple(sizes)
        self.home: Any = None
        self.name = ""

    def register(self, home: nn.Module, name: str) -> Parameter:
        """Register the weight in a module, and return self."""
        home.register_parameter(name, nn.Parameter(torch.zeros(self.sizes)))
        self.home, self.name = home, name
        return self

    def like(self, rank: int) -> Parameter:
        """The same array for an operand of another rank."""
        found = Parameter(rank, self.sizes)
        found.home, found.name = self.home, self.name
        return found

    @property
    def weight(self) -> Tensor:
        found: Tensor = getattr(self.home, self.name)
        return found if found.dim() == len(self.sizes) else found.reshape(self.sizes)  # a divided number is an array

    def __call__(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return the array [..., *sizes] for each example of like [..., `rank` axes], and for one example."""
        return expand_over_batch(self.weight.reshape(*[1] * (like.dim() - self.rank), *self.sizes), like, self.rank)

    def bare(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The array itself, twice, for users that broadcast it."""
        return self.weight, self.weight

    def run_rows(self, weights: Weights, rank: int, like: Tensor) -> Tensor:
        """Array r for row r of like [..., R, message]: [..., R, *sizes]."""
        outer = like.shape[: like.dim() - rank - 1]
        own_R = weights[""]
        return own_R.expand(*outer, own_R.shape[0], *self.sizes)


class Constant(Layer):
    """Constant numbers or `ids` that all examples share; `rank` is the number of axes of one example of the operand."""

    rank: int
    sizes: Sequence[int]
    values: Sequence[float]
    ids: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tensors: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def forward(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return the array [..., *sizes] for each example of like [..., `rank` axes], and for one example."""
        kind = like.dtype if like.is_floating_point() else torch.get_default_dtype()
        kind = torch.int64 if self.ids else kind
        if len(self.values) == 1:  # computed in the graph: the step of an exported scan may capture no tensors
            first = int(self.values[0]) if self.ids else self.values[0]
            found = torch.full(tuple(self.sizes), first, dtype=kind, device=like.device)
        else:
            found = self._read_tensor(kind, like.device)
        return expand_over_batch(found.reshape(*[1] * (like.dim() - self.rank), *self.sizes), like, self.rank)

    def _read_tensor(self, kind: torch.dtype, device: torch.device) -> Tensor:
        """The numbers as a tensor, which is made once: a table may have as many as a vocabulary has words."""
        if torch.compiler.is_compiling():
            return self._make_tensor(kind, device)
        if (kind, device) not in self._tensors:
            self._tensors[kind, device] = self._make_tensor(kind, device)
        return self._tensors[kind, device]

    def _make_tensor(self, kind: torch.dtype, device: torch.device) -> Tensor:
        return constant([*map(int, self.values)] if self.ids else self.values, kind, device)


class State(nn.Module):
    """A buffer that the whole batch shares and no gradient updates."""

    value: Tensor

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(tuple(sizes)))

    def forward(self, like: Tensor | None = None) -> Tensor:
        """The array; in training a copy, so that backward still works after a rule has updated the state."""
        return self.value.clone() if self.training and torch.is_grad_enabled() else self.value


class NextState(nn.Module):
    """The next value of a state, without gradient."""

    def forward(self, state: Tensor, value: Tensor) -> Tensor:
        return value.detach()
