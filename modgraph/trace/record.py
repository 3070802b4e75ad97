"""Runs a trained model on examples and keeps what its routers recorded, round by round."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.ir import Part, Result, RouteNode
from modgraph.trace.routes import Records, RouteTrace, joined


@torch.no_grad()
def record(model: Model, arrays: Arrays, route: RouteNode) -> RouteTrace:
    """What a route of a model recorded over some examples, after each round; of one in a scan, at each step after the
    last round. Raises `ModgraphError`."""
    model.eval()
    part = next(part for part in model.graph.parts() if route.name in part.graph)
    recorded = _steps if part.scan is not None else _rounds
    return joined(part, route, [recorded(model, part, route, batch) for _, batch in batches(arrays)])


def _rounds(model: Model, part: Part, route: RouteNode, batch: Mapping[str, Tensor]) -> Records:
    """The records of a batch; a router that the language defines shows those of earlier rounds behind the last."""
    router = part.graph.router_of(route).router
    names = router.record_names
    shown = len(names) if router.computes else len(part.graph.inputs(route.name)) - 2  # what is routed, and the value
    last, *earlier = [range(at, at + len(names)) for at in range(1, shown + 1, len(names))]
    wanted = [Result(route.name, index) for each in (*earlier, last) for index in each]
    found = model.results(batch, tuple(wanted))
    rounds = [found[at : at + len(names)] for at in range(0, len(found), len(names))]
    return {name: np.stack([each[at].numpy() for each in rounds]) for at, name in enumerate(names)}


def _steps(model: Model, part: Part, route: RouteNode, batch: Mapping[str, Tensor]) -> Records:
    """The records of a batch of a route in a scan, [1, B, T, ..., N, M]."""
    known = {name: part.outside(result) for name, result in part.graph.recorded(route).items()}
    results = model.results(batch, tuple(known.values()))
    return {name: result.numpy()[None] for name, result in zip(known, results, strict=True)}
