"""Decisions that are drawn, and how likely they and the targets are: what EM and REINFORCE share.

Shape suffixes: B examples, K slots, M modules; `...` time, senders, and other axes of a route.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.declare import CHOSEN, DISTRIBUTION, Role, record_as
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Decision, Graph, Result, drawn_by, told, with_missing_labels
from modgraph.passes.likelihoods import with_likelihoods
from modgraph.training.errors import LabelsAreMissing, NoDistribution, NoLikelihood, NothingDrawn
from modgraph.types import Axis

JOINT = "joint:"  # the objective in the place of the likelihoods; no name in a spec has a colon


@dataclass(frozen=True)
class DrawnRoute:
    """A route whose router draws. `shape` is that of an example's choices, [..., K]; `told` is the name under which a
    batch says what is drawn."""

    name: str
    router: str
    frozen: bool
    modules: int
    shape: tuple[Axis, ...]
    distribution: Result
    role: Role
    choice: Result
    told: str

    def log_probabilities(self, distribution: Tensor) -> Tensor:
        """Of all modules, from what the router records: [B, ..., K, M]."""
        return distribution if self.role is Role.LOG_PROBABILITIES else distribution.log_softmax(-1)


def drawn_routes(graph: Graph) -> list[DrawnRoute]:
    """The routes of a graph whose routers draw, in scans too. Raises `ModgraphError` if one hides its distribution."""
    return [_drawn(graph, each) for each in graph.decisions() if each.facts.draws]


def _drawn(graph: Graph, decision: Decision) -> DrawnRoute:
    router, chosen = decision.router, decision.record_as(*CHOSEN)
    distribution = record_as(decision.declared, *DISTRIBUTION)
    assert chosen is not None, f"{router.name} draws unseen"
    if distribution is None:
        raise ModgraphError([NoDistribution(router=router.name)])
    draw = drawn_by(decision.inside[chosen], decision.part.graph)
    assert draw is not None, f"{router.name} draws by nothing"
    choice = decision.results[chosen]
    *shape, modules = graph.type_of(choice).shape
    facts = decision.name, router.name, router.frozen, modules.size or 0, tuple(shape)
    from_ = decision.results[distribution.name]
    return DrawnRoute(*facts, from_, distribution.role, choice, told(draw.name))


@dataclass(frozen=True)
class DecisionLikelihood:
    """A graph that also tells how likely targets and decisions are.

    `likelihoods` are results, by the loss that they stand for: −log p(y|x, a) summed over an example's positions.
    """

    graph: Graph
    likelihoods: dict[str, Result]
    routes: list[DrawnRoute]

    @classmethod
    def of(cls, graph: Graph, algorithm: str) -> DecisionLikelihood:
        """Raises `ModgraphError` if there is nothing to judge, or nothing to judge by."""
        routes = drawn_routes(graph)
        if not routes:
            raise ModgraphError([NothingDrawn(algorithm=algorithm)])
        for target in sorted(with_missing_labels(graph)):
            raise ModgraphError([LabelsAreMissing(algorithm=algorithm, target=target)])
        copy, likelihoods = with_likelihoods(graph)
        if not likelihoods:
            raise ModgraphError([NoLikelihood(algorithm=algorithm)])
        return cls(copy, likelihoods, routes)

    @property
    def wanted(self) -> tuple[Result, ...]:
        """The results that `log_likelihood`, `log_probability` and `choices` take, in this order."""
        records = [result for route in self.routes for result in (route.distribution, route.choice)]
        return (*self.likelihoods.values(), *records)

    def log_likelihood(self, found: Sequence[Tensor]) -> Tensor:
        """log p(y|x, a): [B]."""
        return -torch.stack(list(found[: len(self.likelihoods)])).sum(0)

    def log_probability(self, found: Sequence[Tensor]) -> Tensor:
        """log p(a|x) of what was chosen, over all routes, steps, senders and slots; padding counts nothing: [B]."""
        pairs = zip(self.routes, self._records(found), strict=True)
        chosen = [route.log_probabilities(distribution) * choice for route, (distribution, choice) in pairs]
        return torch.stack([each.flatten(1).sum(1) for each in chosen]).sum(0)

    def objective(self, losses: Mapping[str, Tensor], joint: Tensor) -> dict[str, Tensor]:
        """The losses that are no likelihood, and what takes the place of those that are: [B]."""
        others = {name: loss for name, loss in losses.items() if name not in self.likelihoods}
        return {**others, JOINT: joint}

    def chosen(self, found: Sequence[Tensor]) -> dict[str, Tensor]:
        """The modules that each route chose: [B, ..., K]."""
        pairs = zip(self.routes, self._records(found), strict=True)
        return {route.name: choice.argmax(-1) for route, (_, choice) in pairs}

    def _records(self, found: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        records = found[len(self.likelihoods) :]
        return zip(records[::2], records[1::2], strict=True)
