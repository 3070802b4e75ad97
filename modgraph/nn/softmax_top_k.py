"""Routers that weight the k chosen modules by their share of a softmax over all (GMoE: Li et al., ICLR 2023).

Axes: N tokens, D width of a token, K width of a key, M modules; S tokens of all examples.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.capacity import within_capacity
from modgraph.nn.top_k import Choice, TopK, normal_cdf
from modgraph.nn.unit import SMALL, unit

LARGEST_SCALE = math.log(100)


def load_of(choice: Choice, form: str) -> Tensor:
    """How likely each token chooses each module, smooth in the scores; without noise, whether it does.

    `paper` is 1 − Φ((η_k − score) / σ), equation 10; `kth_of_others` the chance to stay in the top k if the module's
    noise alone is drawn anew; `code` the authors' program, which takes the softmax for the score.
    """
    if choice.deviation == 0:
        return choice.selected
    if form == "kth_of_others":
        return choice.chance_to_stay()
    value = choice.scores.softmax(-1) if form == "code" else choice.scores
    return normal_cdf((value - choice.kth_largest()) / choice.deviation)


class SoftmaxRecords(NamedTuple):
    gates: Tensor
    scores: Tensor
    selected: Tensor
    load: Tensor
    probabilities: Tensor


class SoftmaxTopK(TopK):
    """What these routers have in common: gates, load and capacity. A router says how it scores."""

    def __init__(self, k: int, noise: float, load: str, capacity: float, priority: str) -> None:
        super().__init__(k, noise > 0)
        self.noise = noise
        self.load = load
        self.capacity = capacity
        self.priority = priority

    @abstractmethod
    def logits(self, tokens: Tensor) -> Tensor:
        """Tokens [..., N, D] give [..., N, M]."""

    def scored(self, tokens: Tensor) -> tuple[Tensor, float]:
        return self.logits(tokens), self.noise

    def records(self, choice: Choice) -> SoftmaxRecords:
        gates = choice.softmax_of_all() if self.k == 1 else choice.softmax_of_chosen()
        selected = choice.selected
        if self.capacity and self.training:
            selected = self._within_capacity(choice)
            gates = gates * selected
        load = load_of(choice, self.load)
        return SoftmaxRecords(gates, choice.scores, selected, load, choice.scores.softmax(-1))

    def _within_capacity(self, choice: Choice) -> Tensor:
        """The choices that are not dropped: k · int(capacity · ⌈S / M⌉) of each module over the batch."""
        selected = choice.selected if choice.real is None else choice.selected & choice.real
        tokens = int(selected.any(-1).sum())
        capacity = self.k * int(self.capacity * math.ceil(tokens / selected.shape[-1]))
        return within_capacity(choice.noisy.softmax(-1), selected, capacity, self.priority)


class CosineTopK(SoftmaxTopK):
    """Logits are cosines of a token's query and the modules' keys, times exp(min(scale, log 100))."""

    def __init__(
        self,
        width_in: int,
        modules: int,
        k: int = 1,
        width: int = 256,
        noise: float = 0.0,
        load: str = "paper",
        capacity: float = 0.0,
        priority: str = "score",
    ) -> None:
        super().__init__(k, noise, load, capacity, priority)
        self.weight = nn.Parameter(torch.empty(width, width_in))
        self.bias = nn.Parameter(torch.zeros(width))
        self.keys = nn.Parameter(torch.empty(width, modules))
        self.scale = nn.Parameter(torch.tensor(math.log(2)))

    def logits(self, tokens: Tensor) -> Tensor:
        query = unit(F.linear(tokens, self.weight, self.bias))
        keys_KM = F.normalize(self.keys, dim=0, eps=SMALL)
        return query @ keys_KM * self.scale.clamp(max=LARGEST_SCALE).exp()


class LinearTopK(SoftmaxTopK):
    """Logits are a linear map of the token."""

    def __init__(
        self,
        width_in: int,
        modules: int,
        k: int = 1,
        noise: float = 0.0,
        load: str = "paper",
        capacity: float = 0.0,
        priority: str = "score",
    ) -> None:
        super().__init__(k, noise, load, capacity, priority)
        self.weight = nn.Parameter(torch.empty(modules, width_in))

    def logits(self, tokens: Tensor) -> Tensor:
        return F.linear(tokens, self.weight)
