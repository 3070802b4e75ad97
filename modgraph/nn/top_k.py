"""Routers that score all modules for each token, add noise in training, and choose the k best.

Axes: N tokens, M modules. Scores, choices and what else is recorded are [..., N, M].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.padding import cleared
from modgraph.nn.selected import Records
from modgraph.nn.shard import standard_normal

LEAST_NOISE = 0.01


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """True at the k largest along the last axis, of equal ones the first: k rounds of argmax."""
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    for _ in range(k):
        best = scores.masked_fill(chosen, -torch.inf).argmax(-1, keepdim=True)
        chosen = chosen.scatter(-1, best, True)
    return chosen


def normal_cdf(x: Tensor) -> Tensor:
    """Φ(x)."""
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


class Choice(NamedTuple):
    """The k best of noisy scores; `selected` is true for the chosen, `real` false for padding."""

    k: int
    scores: Tensor
    deviation: Tensor | float
    noisy: Tensor
    selected: Tensor
    real: Tensor | None

    def kth_largest(self) -> Tensor:
        """η_k, the least of the chosen scores: [..., N, 1]."""
        return self.noisy.masked_fill(~self.selected, torch.inf).amin(-1, keepdim=True)

    def chance_to_stay(self) -> Tensor:
        """The probability that a module is among the top k if its noise alone is drawn anew."""
        if self.k == self.scores.shape[-1]:
            return torch.ones_like(self.scores)
        next_best = self.noisy.masked_fill(self.selected, -torch.inf).amax(-1, keepdim=True)
        others = torch.where(self.selected, next_best, self.kth_largest())
        return normal_cdf((self.scores - others) / self.deviation)

    def softmax_of_all(self) -> Tensor:
        """The softmax over all modules, kept for the chosen."""
        return self.noisy.softmax(-1) * self.selected

    def softmax_of_chosen(self) -> Tensor:
        """The softmax over the chosen modules alone."""
        return self.noisy.masked_fill(~self.selected, -torch.inf).softmax(-1)


class TopK(nn.Module, ABC):
    """What such routers have in common: noise, choice, padding. A router says how it scores, and what it records."""

    def __init__(self, k: int, noisy: bool) -> None:
        super().__init__()
        self.k = k
        self.noisy = noisy

    @abstractmethod
    def scored(self, tokens: Tensor) -> tuple[Tensor, Tensor | float]:
        """Scores of tokens [..., N, D], and the standard deviation of their noise."""

    @abstractmethod
    def records(self, choice: Choice) -> Records:
        """What the router keeps of its choice."""

    def forward(self, tokens: Tensor, real: Tensor | None = None) -> Records:
        """Records [..., N, M], scores without noise; zero for padding."""
        scores, deviation = self.scored(tokens)
        noisy = scores + standard_normal(scores) * deviation if self.noisy and self.training else scores
        records = self.records(Choice(self.k, scores, deviation, noisy, top_k_mask(noisy, self.k), real))
        return type(records)(*(cleared(record.to(scores.dtype), real) for record in records))


class NoisyRecords(NamedTuple):
    gates: Tensor
    scores: Tensor
    selected: Tensor
    load: Tensor


class NoisyTopK(TopK):
    """Noisy top-k gating (Shazeer et al., 2017, section 2.1 and appendix A)."""

    def __init__(self, width_in: int, modules: int, k: int, noise: bool = True, softmax: str = "after_top_k") -> None:
        super().__init__(k, noise)
        self.weight = nn.Parameter(torch.zeros(modules, width_in))
        self.noise_weight = nn.Parameter(torch.zeros(modules, width_in))
        self.softmax_first = softmax == "before_top_k"

    def scored(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        deviation = F.softplus(F.linear(tokens, self.noise_weight)) + LEAST_NOISE
        return F.linear(tokens, self.weight), deviation

    def records(self, choice: Choice) -> NoisyRecords:
        gates = choice.softmax_of_all() if self.softmax_first else choice.softmax_of_chosen()
        load = choice.chance_to_stay() if self.noisy and self.training else choice.selected
        return NoisyRecords(gates, choice.scores, choice.selected, load)
