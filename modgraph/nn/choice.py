"""Choices (ones and zeros along an axis), capacity, straight-through gates, and routers by choice.

Shape suffixes: S tokens of all examples, M modules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.arithmetic import broadcast
from modgraph.nn.layer import Layer
from modgraph.nn.order import exact
from modgraph.nn.padding import apply_mask
from modgraph.nn.shard import own_rows, whole_batch


def mark_top_k(scores: Tensor, k: int, axis: int = -1) -> Tensor:
    """One at the k largest of scores along an axis, else zero, by k rounds of argmax; ties go to the first."""
    choice, left = torch.zeros_like(scores), scores
    for round_ in range(k):
        largest = left.argmax(axis, keepdim=True)
        choice = choice.scatter(axis, largest, 1.0)
        left = left.scatter(axis, largest, -torch.inf) if round_ < k - 1 else left
    return choice


class TopKMask(AlongAxis):
    """One at the k largest along an axis, else zero; ties go to the first."""

    k: int

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x of any shape gives the same shape; the choice never falls on padding."""
        values = apply_mask(x.detach(), mask, -torch.inf)
        return apply_mask(mark_top_k(values, self.k, self.axis), mask)


class MaskedSoftmax(AlongAxis):
    """The softmax along an axis over the places of a choice.

    `lacks` and `orders` say how the choice, and a sink, broadcast: the axes that it lacks, and the order of its own.
    """

    lacks: tuple[tuple[int, ...], ...] = ((), ())
    orders: tuple[tuple[int, ...], ...] = ((), ())

    def forward(self, x: Tensor, choice: Tensor, sink: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """x of any shape, and a choice that broadcasts to it, give the shape of x; zero outside the choice. A sink has
        its axes but the one of the softmax."""
        outside = broadcast(choice, self.lacks[0], self.orders[0]) == 0
        outside = outside if mask is None else outside | ~mask
        found = x.masked_fill(outside, torch.finfo(x.dtype).min)
        if sink is None:
            return found.softmax(self.axis).masked_fill(outside, 0.0)
        last = broadcast(sink, self.lacks[1], self.orders[1]).unsqueeze(self.axis)
        last = last.expand_as(found.narrow(self.axis, 0, 1))
        found = torch.cat((found, last), self.axis).softmax(self.axis).narrow(self.axis, 0, x.shape[self.axis])
        return found.masked_fill(outside, 0.0)


class Above(Layer):
    """One where a value exceeds a threshold, else zero."""

    threshold: float

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x of any shape gives the same shape; zero in padding."""
        return apply_mask((x.detach() > self.threshold).to(x.dtype), mask)


class FirstPlaces(Layer):
    """Slot i chooses place i of the last axis, whatever its value."""

    slots: int

    def forward(self, x: Tensor) -> Tensor:
        """x [..., M] gives [..., slots, M]."""
        places = torch.arange(x.shape[-1], device=x.device)
        choice = (places[: self.slots, None] == places).to(x.dtype)
        return choice.expand(*x.shape[:-1], -1, -1)


class Dispatch(AlongAxis):
    """Assigns the chosen places along an axis to slots, in order."""

    slots: int

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """A choice x of any shape gives ones and zeros with an axis of slots before the axis of the choice."""
        choice = x.detach() != 0 if mask is None else (x.detach() != 0) & mask
        rank = choice.to(exact(x)).cumsum(self.axis).unsqueeze(self.axis - 1)
        slot = torch.arange(1, self.slots + 1, device=x.device).reshape(-1, *[1] * -self.axis)
        return ((rank == slot) & choice.unsqueeze(self.axis - 1)).to(x.dtype)


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


class Records(NamedTuple):
    """A router's gates, scores and choice for all modules, each [..., N, M]; the choice is not zero."""

    gates: Tensor
    scores: Tensor
    choice: Tensor


class TokenChoice(Layer):
    """A router whose gates, scores and choice are operands; each token chooses modules.

    With `straight`, gates outside the choice get a gradient too. `rank` is that of a token. With `record_choice`, the
    recorded choice is one where it is not zero.
    """

    k: int
    straight: bool = False
    rank: int = 1
    record_choice: bool = True

    def forward(
        self, tokens: Tensor, weights: Tensor, scores: Tensor, choice: Tensor, mask: Tensor | None = None
    ) -> Records:
        """Tokens [..., N, message], other operands and records [..., N, M]; or all without N. Padding gets zeros."""
        mask = None if mask is None else mask.reshape(mask.shape[: mask.dim() - self.rank]).unsqueeze(-1)
        gates = weights if self.straight or weights is choice else weights.masked_fill(choice == 0, 0.0)
        gates, choice = apply_mask(gates, mask), apply_mask(choice, mask)
        if not self.record_choice:
            return Records(gates, scores, choice)
        return Records(gates, apply_mask(scores.detach(), mask), (choice != 0).to(choice.dtype))


class ExpertChoice(TokenChoice):
    """A router whose gates, scores and choice are operands; each module chooses tokens."""


def queue_by_score(scores_SM: Tensor, wanted_SM: Tensor) -> Tensor:
    """For each module, the tokens that chose it by falling score, then all others: [S, M]. Ties stay in order."""
    return scores_SM.masked_fill(~wanted_SM, -torch.inf).argsort(dim=0, descending=True, stable=True)


def queue_by_first_choice(scores_SM: Tensor, wanted_SM: Tensor) -> Tensor:
    """For each module, the tokens whose first choice it is, then second choices, and so on: indices [S, M].

    Equal choices rank by the token's largest score; ties stay in order. (Riquelme et al., 2021, section 4: batch
    prioritised routing.)
    """
    largest_first_S = scores_SM.amax(-1).argsort(descending=True, stable=True)
    best_first_SM = scores_SM.argsort(dim=-1, descending=True, stable=True)
    rank_SM = best_first_SM.argsort(dim=-1).masked_fill(~wanted_SM, scores_SM.shape[-1])
    return largest_first_S[rank_SM[largest_first_S].argsort(dim=0, stable=True)]


QUEUES = {"score": queue_by_score, "first_choice": queue_by_first_choice}


def limit_capacity(scores: Tensor, choice: Tensor, capacity: int | Tensor, priority: str = "score") -> Tensor:
    """Keep, for each module, the first `capacity` tokens of its queue.

    Scores and choice [..., M] give a choice [..., M]; the queue runs over all outer axes.
    """
    wanted_SM = choice.reshape(-1, choice.shape[-1])
    queue_SM = QUEUES[priority](scores.reshape(wanted_SM.shape), wanted_SM)
    first_S = torch.arange(len(queue_SM), device=queue_SM.device) < capacity
    kept_SM = torch.zeros_like(wanted_SM).scatter(0, queue_SM, first_S.unsqueeze(-1).expand_as(queue_SM))
    return choice & kept_SM.reshape(choice.shape)


class WithinCapacity(AlongAxis):
    """Drops tokens beyond a module's capacity from a choice, in training."""

    share: float
    k: int
    priority: str

    def forward(
        self, scores: Tensor, choice: Tensor, mask: tuple[Tensor | None, Tensor | None] = (None, None)
    ) -> Tensor:
        """Scores and a choice of one shape, batch first, give that shape; padding takes no capacity."""
        if not self.training:
            return choice
        scores, wanted = apply_mask(scores.detach(), mask[0]), apply_mask(choice.detach(), mask[1]) != 0
        scores_SM, wanted_SM = (whole_batch(each).movedim(self.axis, -1) for each in (scores, wanted))
        tokens = wanted_SM.any(-1).sum()
        fair = (tokens + wanted_SM.shape[-1] - 1) // wanted_SM.shape[-1]
        capacity = self.k * (self.share * fair.double()).long()
        kept = limit_capacity(scores_SM, wanted_SM, capacity, self.priority).movedim(-1, self.axis)
        return apply_mask(choice.detach(), own_rows(kept, choice))
