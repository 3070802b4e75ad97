"""A trace: what the routers of a run did on the first examples of a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modgraph.backends.torch import Model
from modgraph.data import TRAIN, Arrays
from modgraph.data.batches import batches
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph
from modgraph.metrics.compared import Accuracy, accuracies
from modgraph.trace.errors import NothingToTrace, UnknownSplit
from modgraph.trace.history import entropies_of, history_of
from modgraph.trace.record import RouteTrace, record, route_called, routes_with_gates
from modgraph.training.run import Run


@dataclass(frozen=True)
class Verdict:
    """What the model said of each example, beside the truth: names of classes."""

    true: tuple[str, ...]
    predicted: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """The routes' records over some examples of a split, and those examples."""

    graph: Graph
    split: str
    arrays: Arrays
    routes: tuple[RouteTrace, ...]
    verdict: Verdict | None
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # use of modules [epochs, modules] by route
    entropies: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # of controllers [epochs, 2] by route
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)  # that the ids of an input stand for

    def __len__(self) -> int:
        return len(self.arrays)

    def first(self, examples: int) -> Trace:
        """The trace of the first examples alone."""
        routes = tuple(route.first(examples) for route in self.routes)
        return replace(self, arrays=_first(self.arrays, examples), routes=routes)


def trace_run(run: Run, split: str | None = None, route: str | None = None, examples: int = 512) -> Trace:
    """Trace the first examples of a split, by default the first that was not learnt from. Raises `ModgraphError`."""
    graph = run.graph
    routes = routes_with_gates(graph) if route is None else [route_called(graph, route)]
    if not routes:
        raise ModgraphError([NothingToTrace(path=str(run.path))])
    model = run.model()
    name, arrays = _chosen(run.splits(), split)
    run.refuse_changed({name: arrays})
    arrays = _first(arrays, examples)
    records = tuple(record(model, arrays, each) for each in routes)
    description, metrics = run.description(), run.directory.metrics
    return Trace(
        graph,
        name,
        arrays,
        records,
        verdict=_verdict(model, arrays, description.get("classes", {})),
        history=history_of(metrics, graph),
        entropies=entropies_of(metrics, graph),
        words=description.get("words", {}),
    )


def _chosen(splits: Mapping[str, Arrays], name: str | None) -> tuple[str, Arrays]:
    if name is None:
        name = next((each for each in splits if each != TRAIN), TRAIN)
    if name not in splits:
        raise ModgraphError([UnknownSplit(name=name, suggestion=did_you_mean(name, splits))])
    return name, splits[name]


def _first(arrays: Arrays, examples: int) -> Arrays:
    """The first examples, in memory."""
    return Arrays(arrays.read(slice(examples)), {name: words[:examples] for name, words in arrays.groups.items()})


def _verdict(model: Model, arrays: Arrays, classes: Mapping[str, Any]) -> Verdict | None:
    """Truth and prediction of the model's first target that has one class for each example."""
    for accuracy in accuracies(model.graph):
        if not model.graph.target_types[accuracy.target].shape:
            truth, guess = arrays.values[accuracy.target], _predicted(model, arrays, accuracy)
            names = classes.get(accuracy.target)
            return Verdict(_named(truth, names), _named(guess, names))
    return None


@torch.no_grad()
def _predicted(model: Model, arrays: Arrays, accuracy: Accuracy) -> NDArray[Any]:
    parts = [model.results(batch, (accuracy.result,))[0].argmax(-1).numpy() for _, batch in batches(arrays)]
    return np.concatenate(parts)


def _named(labels: NDArray[Any], names: list[str] | None) -> tuple[str, ...]:
    return tuple(str(label) if names is None else names[label] for label in labels.tolist())
