"""Arrays that are given, and arrays that a rule moves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from modgraph.nn.device import constant
from modgraph.nn.layer import Layer
from modgraph.nn.parameter import for_each


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

    def forward(self, like: Tensor) -> Tensor:
        """The array; while it learns, as a copy, with which gradients are found when a rule has moved the state."""
        return self.value.clone() if self.training and torch.is_grad_enabled() else self.value


class NextState(nn.Module):
    """What a state becomes."""

    def forward(self, state: Tensor, value: Tensor) -> Tensor:
        return value.detach()
