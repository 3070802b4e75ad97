"""What one route of a model recorded, and which routes of a graph record what can be traced.

Axis letters: R rounds, B examples, N senders (tokens), M modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.declare import CHOSEN, Role
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, Part, RouteNode, ScanNode
from modgraph.routers import Router
from modgraph.trace.errors import NotFinite, UnknownRoute

Records = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class RouteTrace:
    """What one route recorded: arrays [R, B, ..., N, M] by the name of the record, gates among them."""

    name: str
    pool: str
    router: Router
    records: Mapping[str, NDArray[Any]] = field(repr=False)

    def recorded(self, *roles: Role) -> NDArray[Any] | None:
        """What was recorded in the first of these roles that the router has a record for."""
        record = self.router.record_as(*roles)
        return None if record is None else self.records[record.name]

    @property
    def short_pool(self) -> str:
        """The last word of the pool's path, for labels."""
        return self.pool.rpartition(".")[2]

    @property
    def gates(self) -> NDArray[Any]:
        gates = self.recorded(Role.GATES)
        assert gates is not None, "only routes with gates are traced"
        return gates

    @property
    def selects(self) -> bool:
        """Whether each module is chosen or not."""
        return self.router.record_as(*CHOSEN) is not None

    @property
    def chosen(self) -> NDArray[Any]:
        """How many slots each module was selected for, or the gates where a router selects nothing."""
        slots, choice = self.recorded(Role.SLOTS), self.recorded(Role.CHOICE)
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


def parts_with_gates(graph: Graph) -> list[tuple[Part, RouteNode]]:
    """The routes of a graph whose router records a gate for each module, in the order of work, each with the part of
    the graph that it stands in."""
    return [(part, route) for part, route in _routes(graph) if part.graph.router_of(route).router.record_as(Role.GATES)]


def routes_with_gates(graph: Graph) -> list[RouteNode]:
    """The routes of a graph whose router records a gate for each module, those in scans too, in the order of work."""
    return [route for _, route in parts_with_gates(graph)]


def _routes(graph: Graph) -> Iterator[tuple[Part, RouteNode]]:
    """Every route in the order of work, with the part of the graph that it stands in."""
    for node in graph:
        match node:
            case RouteNode():
                yield Part(graph), node
            case ScanNode(region=region):
                yield from ((Part(region.graph, node), route) for route in region.graph.of_kind(RouteNode))


def route_called(graph: Graph, name: str) -> RouteNode:
    """One of the routes with gates. Raises `ModgraphError`."""
    routes = {route.name: route for route in routes_with_gates(graph)}
    if name not in routes:
        raise ModgraphError([UnknownRoute(name=name, suggestion=did_you_mean(name, routes))])
    return routes[name]


def joined(part: Part, route: RouteNode, batches: Sequence[Records]) -> RouteTrace:
    """The trace of a route whose records were taken batch by batch. Raises `ModgraphError` unless they are finite."""
    records = {name: np.concatenate([batch[name] for batch in batches], axis=1) for name in batches[0]}
    for name, array in records.items():
        if not np.isfinite(array).all():
            raise ModgraphError([NotFinite(record=name, route=route.name)])
    pool, router = part.graph.pool_of(route), part.graph.router_of(route).router
    return RouteTrace(route.name, pool.name, router, records)
