"""Runs a trained model on examples and keeps what its routers recorded, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.ir import Decision, Result
from modgraph.trace.routes import Records, RouteTrace, joined


@torch.no_grad()
def record(model: Model, arrays: Arrays, route: Decision) -> RouteTrace:
    """What a router of a model recorded at a route over some examples, after each round; at one in a scan, at each step
    after the last round. Raises `ModgraphError`."""
    model.eval()
    inside = route.part.scan is not None
    rounds = {name: (each,) for name, each in route.results.items()} if inside else route.rounds
    return joined(route, [_records(model, rounds, batch) for _, batch in batches(arrays)])


def _records(model: Model, rounds: Mapping[str, Sequence[Result]], batch: Mapping[str, Tensor]) -> Records:
    """The records of a batch, [R, B, ..., N, M]; of a route in a scan, [1, B, T, ..., N, M]."""
    found = iter(model.results(batch, tuple(each for results in rounds.values() for each in results)))
    return {name: np.stack([next(found).numpy() for _ in results]) for name, results in rounds.items()}
