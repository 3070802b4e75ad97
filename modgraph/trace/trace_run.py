"""Traces a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modgraph.backends.torch import Model
from modgraph.data import TRAIN, Arrays
from modgraph.data.batches import batches
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Decision, Result, comparisons
from modgraph.metrics.controllers import controllers
from modgraph.metrics.target_metrics import accuracies, choose_class
from modgraph.store.growth import read_growth
from modgraph.store.journal import check_logs, read_metrics
from modgraph.trace.errors import NothingToTrace
from modgraph.trace.trace import RouteTrace, Trace, choose_split, first_of, list_routes_with_gates, name_classes
from modgraph.training.stored_run import StoredRun


def trace_run(run: StoredRun, split: str | None = None, route: str | None = None, examples: int = 512) -> Trace:
    """Trace the first examples of a split, by default the first split but `train`. Raises `ModgraphError`."""
    routes = list_routes_with_gates(run.graph, route)
    if not routes:
        raise ModgraphError([NothingToTrace(path=str(run.path))])
    check_logs(run.directory)
    checkpoint = run.checkpoint()
    model = run.model(checkpoint=checkpoint)
    name, arrays = choose_split(run.splits(), split)
    run.refuse_changed({name: arrays})
    arrays = first_of(run.so_far({name: arrays})[name], examples)
    description, found_controllers, metrics = run.description(), controllers(run.graph), read_metrics(run.directory)
    classes = description.get("classes", {})
    types = model.graph.target_types
    compared = [
        each for each in accuracies(model.graph) if types[each.target].dtype == "class" and not types[each.target].shape
    ]
    logits = [_compute(model, arrays, [each.result])[0] for each in compared[:1]]
    predicted = [
        name_classes(choose_class(found, each.compared).astype(int), classes.get(each.target))
        for found, each in zip(logits, compared, strict=False)
    ]
    return Trace(
        run.graph,
        name,
        arrays,
        tuple(record(model, arrays, each) for each in routes),
        labels={each.target: name_classes(arrays.values[each.target], classes.get(each.target)) for each in compared},
        predicted=predicted[0] if predicted else (),
        predictions={each.target: each.prediction for each in comparisons(run.graph)},
        history=read_metrics_over_time(metrics, {each.route: each.use for each in found_controllers}),
        entropies=read_metrics_over_time(metrics, {each.route: each.entropies for each in found_controllers}),
        words=description.get("words", {}),
        growth=read_growth(run.directory),
        epoch=checkpoint.epoch,
        step=checkpoint.step,
    )


def record(model: Model, arrays: Arrays, route: Decision) -> RouteTrace:
    """Compute the records of one route over examples, after each round [R, B, ..., N, M]; for a route in a scan, at
    each step after the last round [1, B, T, ..., N, M]. Raises `ModgraphError`."""
    inside = route.part.scan is not None
    rounds = {name: (each,) for name, each in route.results.items()} if inside else route.rounds
    found = iter(_compute(model, arrays, [each for results in rounds.values() for each in results]))
    return RouteTrace.from_records(
        route, {name: np.stack([next(found) for _ in results]) for name, results in rounds.items()}
    )


@torch.no_grad()
def _compute(model: Model, arrays: Arrays, results: Sequence[Result]) -> list[NDArray[Any]]:
    model.eval()
    found = [model.results(batch, tuple(results)) for _, batch in batches(arrays)]
    return [np.concatenate([each.numpy() for each in parts]) for parts in zip(*found, strict=True)]


def read_metrics_over_time(
    lines: Iterable[Mapping[str, Any]], wanted: Mapping[str, Sequence[str]]
) -> dict[str, NDArray[np.float64]]:
    """Return metrics of each route over a training, [epochs, names], for the epochs that have all of them."""
    trained = [line for line in lines if line["split"] == TRAIN]
    found = {
        route: [[line[name] for name in names] for line in trained if line.keys() >= {*names}]
        for route, names in wanted.items()
    }
    return {route: np.array(epochs, np.float64) for route, epochs in found.items() if epochs}
