"""Choices, and what is made of them: ones and zeros along an axis."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.padding import cleared
from modgraph.nn.top_k import top_k_mask


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


class ChosenRecords(NamedTuple):
    gates: Tensor
    scores: Tensor
    selected: Tensor


class Chosen(nn.Module):
    """A router that is told its gates, its choice, and what this ranks modules by."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(
        self, tokens: Tensor, weights: Tensor, scores: Tensor, choice: Tensor, real: Tensor | None = None
    ) -> ChosenRecords:
        """Tokens [..., N, D], all else [..., N, M], or without N for a single one; padding gets zeros."""
        given = (each if each.dim() == tokens.dim() else each.unsqueeze(-2) for each in (weights, scores, choice))
        weights, scores, choice = (cleared(each, real) for each in given)
        return ChosenRecords(cleared(weights, choice != 0), scores.detach(), choice)
