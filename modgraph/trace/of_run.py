"""The trace of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.diagnostics import ModgraphError
from modgraph.ir import comparisons
from modgraph.metrics.compared import Accuracy, accuracies
from modgraph.store.growth import growth_of
from modgraph.store.sealed_logs import check_logs
from modgraph.trace.errors import NothingToTrace
from modgraph.trace.history import entropies_of, history_of
from modgraph.trace.record import record
from modgraph.trace.routes import route_called, routes_with_gates
from modgraph.trace.trace import Trace, Verdict, chosen_split, first_of, named
from modgraph.training.stored_run import Run


def trace_run(run: Run, split: str | None = None, route: str | None = None, examples: int = 512) -> Trace:
    """Trace the first examples of a split, by default the first that was not learnt from. Raises `ModgraphError`."""
    routes = routes_with_gates(run.graph) if route is None else [route_called(run.graph, route)]
    if not routes:
        raise ModgraphError([NothingToTrace(path=str(run.path))])
    check_logs(run.directory)
    checkpoint = run.checkpoint()
    model = run.model_of(checkpoint)
    name, arrays = chosen_split(run.splits(), split)
    run.refuse_changed({name: arrays})
    arrays = first_of(run.so_far({name: arrays})[name], examples)
    records = tuple(record(model, arrays, each) for each in routes)
    description, metrics = run.description(), run.directory.metrics
    classes, compared = description.get("classes", {}), _of_examples(model)
    return Trace(
        run.graph,
        name,
        arrays,
        records,
        verdict=_verdict(model, arrays, compared[0], classes) if compared else None,
        labels={each.target: named(arrays.values[each.target], classes.get(each.target)) for each in compared},
        predictions={each.target: each.prediction for each in comparisons(run.graph)},
        history=history_of(metrics, run.graph),
        entropies=entropies_of(metrics, run.graph),
        words=description.get("words", {}),
        growth=growth_of(run.directory),
        epoch=checkpoint.epoch,
        step=checkpoint.step,
    )


def _of_examples(model: Model) -> list[Accuracy]:
    """What tells of targets that have one class for each example."""
    return [each for each in accuracies(model.graph) if not model.graph.target_types[each.target].shape]


def _verdict(model: Model, arrays: Arrays, accuracy: Accuracy, classes: Mapping[str, Any]) -> Verdict:
    """Truth and prediction of a target."""
    names = classes.get(accuracy.target)
    truth, guess = arrays.values[accuracy.target], _predicted(model, arrays, accuracy)
    return Verdict(named(truth, names), named(guess, names))


@torch.no_grad()
def _predicted(model: Model, arrays: Arrays, accuracy: Accuracy) -> NDArray[Any]:
    parts = [model.results(batch, (accuracy.result,))[0].argmax(-1).numpy() for _, batch in batches(arrays)]
    return np.concatenate(parts)
