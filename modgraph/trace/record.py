"""Runs a trained model on examples and keeps what its routers recorded, round by round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from modgraph.backends.torch import CompiledRoute, Model
from modgraph.backends.torch.construct import construct
from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.ir import Graph, Part, Result, RouteNode, bind_route
from modgraph.routers import Router
from modgraph.trace.routes import Records, RouteTrace, joined


@torch.no_grad()
def record(model: Model, arrays: Arrays, route: RouteNode) -> RouteTrace:
    """What a route of a model recorded over some examples, after each round; of one in a scan, at each step after the
    last round. Raises `ModgraphError`."""
    model.eval()
    part = next(part for part in model.graph.parts() if route.name in part.graph)
    recorded = _steps if part.scan is not None else _rounds if part.graph.router_of(route).router.computes else _shown
    return joined(part, route, [recorded(model, part, route, batch) for _, batch in batches(arrays)])


def _rounds(model: Model, part: Part, route: RouteNode, batch: Mapping[str, Tensor]) -> Records:
    """The records of a batch: what flows into the route is computed once, the route once for each round."""
    step = next(step for step in model.steps if step.node == route.name)
    full = step.compute
    assert isinstance(full, CompiledRoute)
    sources = (*step.operands, *step.lengths)
    found = model.results(batch, sources)
    operands, lengths = found[: len(step.operands)], found[len(step.operands) :]
    inputs = zip((each.node for each in step.lengths), lengths, strict=True)
    named = step.masks(operands, {name: (length,) for name, length in inputs})
    router = part.graph.router_of(route).router
    rounds = [
        replace(full, router=_with_weights(part.graph, route, each, full.router))(*operands, **named)
        for each in router.rounds
    ]
    records = zip(*(kept for _, *kept in rounds), strict=True)
    return {
        name: np.stack([each.numpy() for each in of_rounds])
        for name, of_rounds in zip(router.record_names, records, strict=True)
    }


def _shown(model: Model, part: Part, route: RouteNode, batch: Mapping[str, Tensor]) -> Records:
    """The records of a batch of a route whose router the language defines: it shows those of earlier rounds last."""
    names = part.graph.router_of(route).router.record_names
    shown = len(part.graph.inputs(route.name)) - 1  # the value, the last records, those of earlier rounds
    last, *earlier = [range(at, at + len(names)) for at in range(1, shown, len(names))]
    wanted = [Result(route.name, index) for each in (*earlier, last) for index in each]
    found = model.results(batch, tuple(wanted))
    rounds = [found[at : at + len(names)] for at in range(0, len(found), len(names))]
    return {name: np.stack([each[at].numpy() for each in rounds]) for at, name in enumerate(names)}


def _steps(model: Model, part: Part, route: RouteNode, batch: Mapping[str, Tensor]) -> Records:
    """The records of a batch of a route in a scan, [1, B, T, ..., N, M]."""
    known = {name: part.outside(result) for name, result in part.graph.recorded(route).items()}
    results = model.results(batch, tuple(known.values()))
    return {name: result.numpy()[None] for name, result in zip(known, results, strict=True)}


def _with_weights(graph: Graph, route: RouteNode, router: Router, trained: nn.Module) -> nn.Module:
    """The module of a router like the trained one, with the very same weights."""
    operands = [graph.type_of(result) for result in graph.inputs(route.name).values()]
    module: nn.Module = construct(bind_route(router, graph.pool_of(route), *operands))
    module.load_state_dict(trained.state_dict(), assign=True)
    return module.eval()
