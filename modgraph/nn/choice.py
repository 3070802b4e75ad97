"""Choices, and what is made of them: ones and zeros along an axis. S tokens of all examples, M modules."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.layer import Layer
from modgraph.nn.order import exact
from modgraph.nn.padding import cleared
from modgraph.nn.shard import own_rows, whole_batch


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """True at the k largest along the last axis, of equal ones the first: k rounds of argmax."""
    chosen, left = torch.zeros_like(scores, dtype=torch.bool), scores
    for round_ in range(k):
        left = left if round_ == 0 else scores.masked_fill(chosen, -torch.inf)
        chosen = chosen.scatter(-1, left.argmax(-1, keepdim=True), True)
    return chosen


class TopKMask(AlongAxis):
    """One at the k largest along an axis, of equal ones the first."""

    k: int

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

    slots: int

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


class Records(NamedTuple):
    """What a router says of all modules, each [..., N, M]; what is selected is not zero."""

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
    ) -> Records:
        """Tokens [..., N, message], all else [..., N, M]; or all without N. Padding gets zeros."""
        real = None if real is None else real.reshape(real.shape[: real.dim() - self.rank]).unsqueeze(-1)
        gates = weights if self.straight or weights is choice else cleared(weights, choice != 0)
        gates, choice = cleared(gates, real), cleared(choice, real)
        if not self.shows:
            return Records(gates, scores, choice)
        return Records(gates, cleared(scores.detach(), real), (choice != 0).to(choice.dtype))


class ChosenSenders(Chosen):
    """The same where each module chooses k of the tokens."""


def by_score(scores_SM: Tensor, wanted_SM: Tensor) -> Tensor:
    """The tokens of each module, those first that chose it with the largest scores, of equal ones the first: [S, M]."""
    return scores_SM.masked_fill(~wanted_SM, -torch.inf).argsort(dim=0, descending=True, stable=True)


def by_first_choice(scores_SM: Tensor, wanted_SM: Tensor) -> Tensor:
    """The tokens of each module, those first whose first choice it is, then second choices, and so on; among these by
    the token's largest score, of equal ones the first: [S, M]. (Riquelme et al., 2021, section 4: batch prioritised.)
    """
    largest_first_S = scores_SM.amax(-1).argsort(descending=True, stable=True)
    best_first_SM = scores_SM.argsort(dim=-1, descending=True, stable=True)
    rank_SM = best_first_SM.argsort(dim=-1).masked_fill(~wanted_SM, scores_SM.shape[-1])
    return largest_first_S[rank_SM[largest_first_S].argsort(dim=0, stable=True)]


QUEUES = {"score": by_score, "first_choice": by_first_choice}


def within_capacity(scores: Tensor, selected: Tensor, capacity: int | Tensor, priority: str = "score") -> Tensor:
    """Of the tokens that chose a module, the first `capacity` in its queue.

    Scores and choices [..., M], all outer axes taken together.
    """
    wanted_SM = selected.reshape(-1, selected.shape[-1])
    queue_SM = QUEUES[priority](scores.reshape(wanted_SM.shape), wanted_SM)
    first_S = torch.arange(len(queue_SM), device=queue_SM.device) < capacity
    kept_SM = torch.zeros_like(wanted_SM).scatter(0, queue_SM, first_S.unsqueeze(-1).expand_as(queue_SM))
    return selected & kept_SM.reshape(selected.shape)


class WithinCapacity(AlongAxis):
    """Of the places that were chosen along an axis those that are not dropped, in training."""

    share: float
    k: int
    priority: str

    def forward(
        self, scores: Tensor, choice: Tensor, real: tuple[Tensor | None, Tensor | None] = (None, None)
    ) -> Tensor:
        """Scores and a choice of one shape, batch first, give that shape; padding takes no place."""
        if not self.training:
            return choice
        scores, chosen = cleared(scores.detach(), real[0]), cleared(choice.detach(), real[1]) != 0
        scores_SM, chosen_SM = (whole_batch(each).movedim(self.axis, -1) for each in (scores, chosen))
        tokens = chosen_SM.any(-1).sum()
        fair = (tokens + chosen_SM.shape[-1] - 1) // chosen_SM.shape[-1]
        capacity = self.k * (self.share * fair.double()).long()
        kept = within_capacity(scores_SM, chosen_SM, capacity, self.priority).movedim(-1, self.axis)
        return cleared(choice.detach(), own_rows(kept, choice))
