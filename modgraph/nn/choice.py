"""Choices, and what is made of them: ones and zeros along an axis."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.layer import Layer
from modgraph.nn.order import exact
from modgraph.nn.padding import cleared


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """True at the k largest along the last axis, of equal ones the first: k rounds of argmax."""
    chosen, left = torch.zeros_like(scores, dtype=torch.bool), scores
    for round_ in range(k):
        left = left if round_ == 0 else scores.masked_fill(chosen, -torch.inf)
        chosen = chosen.scatter(-1, left.argmax(-1, keepdim=True), True)
    return chosen


class TopKMask(AlongAxis):
    """One at the k largest along an axis, of equal ones the first."""

    def __init__(self, axis: int, k: int) -> None:
        super().__init__(axis)
        self.k = k

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """x of any shape gives the same shape; padding is never chosen."""
        values = cleared(x.detach(), real, -torch.inf)
        chosen = top_k_mask(values.movedim(self.axis, -1), self.k).movedim(-1, self.axis)
        return cleared(chosen.to(x.dtype), real)


class MaskedSoftmax(AlongAxis):
    """The softmax along an axis among what is chosen."""

    def forward(self, x: Tensor, choice: Tensor, real: Tensor | None = None) -> Tensor:
        """x and choice of one shape give that shape; zero where nothing is chosen."""
        chosen = choice != 0 if real is None else (choice != 0) & real
        found = cleared(x, chosen, torch.finfo(x.dtype).min).softmax(self.axis)
        return cleared(found, chosen)


class Above(Layer):
    """One where a value is larger than a number."""

    threshold: float

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """x of any shape gives the same shape; zero in padding."""
        return cleared((x.detach() > self.threshold).to(x.dtype), real)


class FirstPlaces(Layer):
    """Slot i takes place i of the last axis, whatever stands there."""

    slots: int

    def forward(self, x: Tensor) -> Tensor:
        """x [..., M] gives [..., slots, M]."""
        places = torch.arange(x.shape[-1], device=x.device)
        chosen = (places[: self.slots, None] == places).to(x.dtype)
        return chosen.expand(*x.shape[:-1], -1, -1)


class Dispatch(AlongAxis):
    """A slot for each thing that was chosen along an axis, in their order."""

    def __init__(self, axis: int, slots: int) -> None:
        super().__init__(axis)
        self.slots = slots

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """x of any shape gives one with an axis of slots in front of that axis."""
        chosen = x.detach() != 0 if real is None else (x.detach() != 0) & real
        rank = chosen.to(exact(x)).cumsum(self.axis).unsqueeze(self.axis - 1)
        slot = torch.arange(1, self.slots + 1, device=x.device).reshape(-1, *[1] * -self.axis)
        return ((rank == slot) & chosen.unsqueeze(self.axis - 1)).to(x.dtype)


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, soft: Tensor, hard: Tensor) -> Tensor:
        return hard.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient, None


class StraightThrough(nn.Module):
    """The second value, with the gradient of the first."""

    def forward(self, soft: Tensor, hard: Tensor) -> Tensor:
        """Both of one shape."""
        if not (self.training and torch.is_grad_enabled()):
            return hard
        found: Tensor = _StraightThrough.apply(soft, hard)  # type: ignore[no-untyped-call]
        return found


class StopGradient(nn.Module):
    """The value itself, through which no gradient flows."""

    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


class TrainingOrInference(nn.Module):
    """The first value in training, the second otherwise."""

    def forward(self, training: Tensor, inference: Tensor) -> Tensor:
        return training if self.training else inference


class ChosenRecords(NamedTuple):
    gates: Tensor
    scores: Tensor
    selected: Tensor


class Chosen(Layer):
    """A router that gets its gates, its choice, and what this ranks modules by.

    `straight` says that the gradient reaches the gates of what was not chosen too; `rank` is that of a token. If it
    `shows` its choice, that is one where it is not zero.
    """

    k: int
    straight: bool = False
    rank: int = 1
    shows: bool = True

    def forward(
        self, tokens: Tensor, weights: Tensor, scores: Tensor, choice: Tensor, real: Tensor | None = None
    ) -> ChosenRecords:
        """Tokens [..., N, message], all else [..., N, M]; or all without N. Padding gets zeros."""
        real = None if real is None else real.reshape(real.shape[: real.dim() - self.rank]).unsqueeze(-1)
        gates = weights if self.straight or weights is choice else cleared(weights, choice != 0)
        gates, choice = cleared(gates, real), cleared(choice, real)
        if not self.shows:
            return ChosenRecords(gates, scores, choice)
        return ChosenRecords(gates, cleared(scores.detach(), real), (choice != 0).to(choice.dtype))


class ChosenSenders(Chosen):
    """The same where each module chooses k of the tokens."""
