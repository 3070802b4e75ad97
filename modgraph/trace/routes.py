"""What one route of a model recorded, and which routes of a graph record what can be traced.

Axis letters: R rounds, B examples, N senders (tokens), M modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.declare import CHOSEN, Role
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Decision, Graph, Result, needed_in
from modgraph.trace.errors import NotFinite, UnknownRoute


@dataclass(frozen=True)
class RouteTrace:
    """What a router recorded at one route: arrays [R, B, ..., N, M] by the name of the record, gates among them."""

    decision: Decision = field(repr=False)
    records: Mapping[str, NDArray[Any]] = field(repr=False)

    @classmethod
    def of(cls, decision: Decision, records: Mapping[str, NDArray[Any]]) -> RouteTrace:
        """Raises `ModgraphError` unless the records are finite."""
        for name, array in records.items():
            if not np.isfinite(array).all():
                raise ModgraphError([NotFinite(record=name, route=decision.label)])
        return cls(decision, records)

    @property
    def name(self) -> str:
        return self.decision.label

    @property
    def pool(self) -> str:
        return self.decision.pool.name

    @property
    def short_pool(self) -> str:
        """The last word of the pool's path, for labels."""
        return self.pool.rpartition(".")[2]

    @property
    def router(self) -> str:
        """The router as a spec writes it."""
        return str(self.decision.router.router)

    @property
    def node(self) -> str:
        """Its node, which is the graph's or that of a scan."""
        return self.decision.name

    def record_as(self, *roles: Role) -> NDArray[Any] | None:
        """The record in the first of these roles that there is one for."""
        name = self.decision.record_as(*roles)
        return None if name is None else self.records[name]

    @property
    def gates(self) -> NDArray[Any]:
        gates = self.record_as(Role.GATES)
        assert gates is not None, "only routes with gates are traced"
        return gates

    @property
    def selects(self) -> bool:
        """Whether each module is chosen or not."""
        return self.decision.record_as(*CHOSEN) is not None

    @property
    def chosen(self) -> NDArray[Any]:
        """How many slots each module was selected for, or the gates where a router selects nothing."""
        slots, choice = self.record_as(Role.SLOTS), self.record_as(Role.CHOICE)
        if slots is not None:
            counts: NDArray[Any] = slots.sum(-2)
            return counts
        return self.gates if choice is None else choice

    @property
    def rounds(self) -> int:
        return len(self.gates)

    @property
    def modules(self) -> int:
        return int(self.gates.shape[-1])

    def first(self, examples: int) -> RouteTrace:
        return replace(self, records={name: array[:, :examples] for name, array in self.records.items()})


def routes_with_gates(graph: Graph, name: str | None = None) -> list[Decision]:
    """The routes of a graph whose router records a gate for each module, those in scans too, in the order of work; with
    a name that one alone. Raises `ModgraphError` if there is no such route."""
    found: dict[str, list[Decision]] = {}
    for each in graph.decisions():
        if each.record_as(Role.GATES) is not None:
            found.setdefault((each.part.scan or each.node).name, []).append(each)
    routes = [each for node in graph for each in found.get(node.name, ())]
    if name is None:
        return routes
    known = {route.label: route for route in routes}
    if name not in known:
        raise ModgraphError([UnknownRoute(name=name, suggestion=did_you_mean(name, known))])
    return [known[name]]


def routes_behind(graph: Graph, results: Sequence[Result]) -> set[str]:
    """The names of the routes with gates that results depend on."""
    needed = needed_in(graph, results).nodes
    return {each.label for each in routes_with_gates(graph) if (each.part.scan or each.node).name in needed}
