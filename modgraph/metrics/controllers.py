"""What the controllers of a graph do: routers that record what they choose from, a distribution over modules, and their
choice (Kirsch et al., 2018).

H_a is the mean over decisions of the controller's entropy, low if it is sure; H_b the entropy of its mean distribution,
low if every decision is the same. Both in nats. Axis letters: D decisions, K slots of one, M modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

import torch
from torch import Tensor

from modgraph.declare import Role
from modgraph.ir import Graph, Result
from modgraph.metrics.means import Means
from modgraph.nn.padding import cleared


def decision_sums(scores_DKM: Tensor, selected_DKM: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums over decisions, given logits (or log-probabilities) and choices; padding chooses nothing: how many; the
    entropy of each, averaged over its slots; the distribution of each slot [K, M]; the choices [M]."""
    real_D = selected_DKM.flatten(1).sum(1) > 0
    log_p = cleared(scores_DKM, real_D[:, None, None]).double().log_softmax(-1)
    p = log_p.exp()
    entropy_D = torch.special.entr(p).sum(-1).mean(-1)
    entropy, probability = cleared(entropy_D, real_D).sum(), cleared(p, real_D[:, None, None]).sum(0)
    return real_D.sum(), entropy, probability, selected_DKM.double().sum((0, 1))


def mean_entropy(p_KM: Tensor) -> float:
    """The entropy of each slot's distribution, averaged over slots."""
    return float(torch.special.entr(p_KM).sum(-1).mean())


@dataclass(frozen=True)
class Controller:
    """The metrics of one route: `H_a`, `H_b`, and each module's share of what was selected, `use.0` and on."""

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

    def add(self, means: Means, batch: Mapping[str, Tensor], values: Sequence[Tensor]) -> None:
        scores, selected = values
        scores_DKM = scores.flatten(0, -3) if self.slotted else scores.flatten(0, -2).unsqueeze(1)
        selected_DKM = selected.reshape(len(scores_DKM), -1, self.modules)
        decisions, entropy, p_KM, chosen_M = decision_sums(scores_DKM, selected_DKM)
        means.hold(self.entropies[:1], entropy, decisions)
        names = [name for slot in range(len(p_KM)) for name in self._probabilities(slot)]
        means.hold(tuple(names), p_KM.flatten(), decisions)
        means.hold(tuple(self.use), chosen_M, chosen_M.sum())

    def _probabilities(self, slot: int) -> list[str]:
        return [f"{self.prefix}probability.{slot}.{module}" for module in range(self.modules)]

    def values(self, gathered: Means) -> dict[str, float]:
        """What is reported, by name, of what was gathered."""
        means = gathered.each()
        slots = takewhile(lambda names: names[0] in means, map(self._probabilities, count()))
        p_KM = torch.tensor([[means[name] for name in names] for names in slots], dtype=torch.float64)
        of_each, of_mean = self.entropies
        return {of_each: means[of_each], of_mean: mean_entropy(p_KM), **{name: means[name] for name in self.use}}


def controllers(graph: Graph) -> list[Controller]:
    """The controllers of a graph, in scans too: the routes whose routers record both what they choose from and what
    they chose; of several, names begin with that of the route."""
    found = []
    for each in graph.decisions():
        if (sampled := each.sampled) is not None:
            slotted = each.record_as(Role.CHOICE) is None
            found.append(Controller(each.label, f"{each.label}.", sampled, slotted, each.pool.size))
    return found if len(found) > 1 else [replace(each, prefix="") for each in found]
