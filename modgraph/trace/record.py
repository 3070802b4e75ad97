"""Runs a trained model on examples and keeps what its routers recorded, round by round.

Axis letters: R rounds, B examples, N senders (tokens), M modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from modgraph.backends.torch import CompiledRoute, Model
from modgraph.backends.torch.construct import construct
from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.declare import CHOSEN, Role
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, RouteNode, ScanNode, bind_route
from modgraph.routers import Router
from modgraph.trace.errors import NotFinite, UnknownRoute

Records = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class RouteTrace:
    """What one route recorded: arrays [R, B, ..., N, M] by the name of the record, gates among them."""

    name: str
    pool: str
    router: Router
    records: Mapping[str, NDArray[Any]]

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


def routes_with_gates(graph: Graph) -> list[RouteNode]:
    """The routes of a graph whose router records a gate for each module, those in scans too, in the order of work."""
    return [route for home, route in _routes(graph) if home.router_of(route).router.record_as(Role.GATES)]


def _routes(graph: Graph) -> Iterator[tuple[Graph, RouteNode]]:
    """Every route in the order of work, with the graph that it stands in."""
    for node in graph:
        match node:
            case RouteNode():
                yield graph, node
            case ScanNode(region=region):
                yield from ((region.graph, route) for route in region.graph.of_kind(RouteNode))


def route_called(graph: Graph, name: str) -> RouteNode:
    """One of the routes with gates. Raises `ModgraphError`."""
    routes = {route.name: route for route in routes_with_gates(graph)}
    if name not in routes:
        raise ModgraphError([UnknownRoute(name=name, suggestion=did_you_mean(name, routes))])
    return routes[name]


@torch.no_grad()
def record(model: Model, arrays: Arrays, route: RouteNode) -> RouteTrace:
    """What a route of a model recorded over some examples, after each round; of one in a scan, at each step after the
    last round. Raises `ModgraphError`."""
    model.eval()
    home = next(part.graph for part in model.graph.parts() if route.name in part.graph)
    recorded = _rounds if home is model.graph else _steps
    parts = [recorded(model, route, batch) for _, batch in batches(arrays)]
    records = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    for name, array in records.items():
        if not np.isfinite(array).all():
            raise ModgraphError([NotFinite(record=name, route=route.name)])
    return RouteTrace(route.name, home.pool_of(route).name, home.router_of(route).router, records)


def _rounds(model: Model, route: RouteNode, batch: Mapping[str, Tensor]) -> Records:
    """The records of a batch: what flows into the route is computed once, the route once for each round."""
    step = next(step for step in model.steps if step.node == route.name)
    full = step.compute
    assert isinstance(full, CompiledRoute)
    sources = (*step.operands, *step.lengths)
    found = model.results(batch, sources)
    operands, lengths = found[: len(step.operands)], found[len(step.operands) :]
    inputs = zip((each.node for each in step.lengths), lengths, strict=True)
    named = step.masks(operands, {name: (length,) for name, length in inputs})
    router = model.graph.router_of(route).router
    rounds = [
        replace(full, router=_with_weights(model.graph, route, each, full.router))(*operands, **named)
        for each in router.rounds
    ]
    records = zip(*(kept for _, *kept in rounds), strict=True)
    return {
        name: np.stack([each.numpy() for each in of_rounds])
        for name, of_rounds in zip(router.record_names, records, strict=True)
    }


def _steps(model: Model, route: RouteNode, batch: Mapping[str, Tensor]) -> Records:
    """The records of a batch of a route in a scan, [1, B, T, ..., N, M]."""
    part = next(part for part in model.graph.parts() if route.name in part.graph)
    known = {name: part.outside(result) for name, result in part.graph.recorded(route).items()}
    results = model.results(batch, tuple(known.values()))
    return {name: result.numpy()[None] for name, result in zip(known, results, strict=True)}


def _with_weights(graph: Graph, route: RouteNode, router: Router, trained: nn.Module) -> nn.Module:
    """The module of a router like the trained one, with the very same weights."""
    operands = [graph.type_of(result) for result in graph.inputs(route.name).values()]
    module = construct(bind_route(router, graph.pool_of(route), *operands))
    module.load_state_dict(trained.state_dict(), assign=True)
    return module.eval()
