"""How many tokens a module takes at most, and who is dropped beyond. S tokens of all examples, M modules."""

from __future__ import annotations

import torch
from torch import Tensor

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.padding import cleared
from modgraph.nn.shard import own_rows, whole_batch


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

    def __init__(self, axis: int, share: float, k: int, priority: str) -> None:
        super().__init__(axis)
        self.share = share
        self.k = k
        self.priority = priority

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
