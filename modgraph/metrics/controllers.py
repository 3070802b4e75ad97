"""Metrics of the controllers of a graph: routers that record a distribution over modules and a choice sampled from it
(Kirsch et al., 2018).

H_a is the mean over decisions of the distribution's entropy, low if the controller is sure. H_b is the entropy of the
mean distribution, low if every decision is the same. Both in nats. Axis letters: D decisions, K slots, M modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

import torch
from torch import Tensor

from modgraph.declare import Role
from modgraph.ir import Graph, Result
from modgraph.metrics.accumulators import Accumulators
from modgraph.nn.padding import apply_mask


def sum_decisions(scores_DKM: Tensor, choice_DKM: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sum over decisions, given logits (or log-probabilities) and choices. A decision that chooses nothing is padding
    and does not count. Returns the number of decisions, their entropies averaged over slots, the distribution of each
    slot [K, M], and the choices [M]."""
    valid_D = choice_DKM.flatten(1).sum(1) > 0
    log_p = apply_mask(scores_DKM, valid_D[:, None, None]).double().log_softmax(-1)
    p = log_p.exp()
    entropy_D = torch.special.entr(p).sum(-1).mean(-1)
    entropy, probability = apply_mask(entropy_D, valid_D).sum(), apply_mask(p, valid_D[:, None, None]).sum(0)
    return valid_D.sum(), entropy, probability, choice_DKM.double().sum((0, 1))


def mean_entropy(p_KM: Tensor) -> float:
    """Return the entropy in nats of each slot's distribution, averaged over slots."""
    return float(torch.special.entr(p_KM).sum(-1).mean())


@dataclass(frozen=True)
class Controller:
    """The metrics of one route: `H_a`, `H_b`, and each module's share of the choices, `use.0` and on."""

    route: str
    prefix: str
    wanted: tuple[Result, Result]
    slotted: bool
    modules: int

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.entropies, *self.use)

    @property
    def entropies(self) -> tuple[str, str]:
        """The names of H_a and H_b."""
        return f"{self.prefix}H_a", f"{self.prefix}H_b"

    @property
    def use(self) -> list[str]:
        """The names of the modules' shares."""
        return [f"{self.prefix}use.{module}" for module in range(self.modules)]

    def add(self, accumulators: Accumulators, batch: Mapping[str, Tensor], values: Sequence[Tensor]) -> None:
        scores, choice = values
        scores_DKM = scores.flatten(0, -3) if self.slotted else scores.flatten(0, -2).unsqueeze(1)
        choice_DKM = choice.reshape(len(scores_DKM), -1, self.modules)
        decisions, entropy, p_KM, choices_M = sum_decisions(scores_DKM, choice_DKM)
        accumulators.add_tensors(self.entropies[:1], entropy, decisions)
        names = [name for slot in range(len(p_KM)) for name in self._probabilities(slot)]
        accumulators.add_tensors(tuple(names), p_KM.flatten(), decisions)
        accumulators.add_tensors(tuple(self.use), choices_M, choices_M.sum())

    def _probabilities(self, slot: int) -> list[str]:
        return [f"{self.prefix}probability.{slot}.{module}" for module in range(self.modules)]

    def values(self, gathered: Accumulators) -> dict[str, float]:
        """Return the reported values by name."""
        average = gathered.averages()
        slots = takewhile(lambda names: names[0] in average, map(self._probabilities, count()))
        p_KM = torch.tensor([[average[name] for name in names] for names in slots], dtype=torch.float64)
        of_each, of_mean = self.entropies
        return {of_each: average[of_each], of_mean: mean_entropy(p_KM), **{name: average[name] for name in self.use}}


def controllers(graph: Graph) -> list[Controller]:
    """Return the controllers of a graph, in scans too: routes whose routers record scores and a choice. With several,
    the route's name precedes the names of its metrics."""
    found = []
    for each in graph.decisions():
        if (sampled := each.sampled) is not None:
            slotted = each.record_as(Role.CHOICE) is None
            found.append(Controller(each.label, f"{each.label}.", sampled, slotted, each.pool.size))
    return found if len(found) > 1 else [replace(each, prefix="") for each in found]
