"""Measuring a model on a split: means of its metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import Batch, ahead, batches
from modgraph.data.known_classes import refuse_labels_beyond
from modgraph.ir import Graph, Result
from modgraph.metrics.means import Means
from modgraph.metrics.metrics import Asked, Metrics
from modgraph.nn.device import sent


class Results(Protocol):
    """Computes what metrics want of a batch, whatever it computes with."""

    metrics: Metrics

    def __call__(self, batch: Batch) -> Sequence[Tensor]: ...


class ModelResults:
    """What a model tells of the metrics of its graph."""

    def __init__(self, model: Model, asked: Asked | None = None) -> None:
        self.model, self.metrics = model.eval(), Metrics(model.graph, asked=asked)

    @torch.no_grad()
    def __call__(self, batch: Batch) -> list[Tensor]:
        return [value.cpu() for value in self.model.results(placed(batch, self.model), tuple(self.metrics.wanted))]


def results_of(
    model: Model, batch: Mapping[str, Tensor], wanted: list[Any], losses: Mapping[str, Result]
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Some results of a batch, for the metrics, and its losses: [B] of one per example, one number over the batch."""
    results = model.results(batch, (*wanted, *losses.values()))
    return results[: len(wanted)], dict(zip(losses, results[len(wanted) :], strict=True))


def metrics_of(graph: Graph, arrays: Arrays, by: str | None, asked: Asked | None = None) -> Metrics:
    """The metrics of a graph on a split, by the groups of a grouping if it has that, and those that are asked for."""
    return Metrics(graph, by, arrays.names_of_groups(by), asked)


@torch.no_grad()
def evaluate(
    model: Model, arrays: Arrays, part: int = 0, parts: int = 1, by: str | None = None, asked: Asked | None = None
) -> Means:
    """What a model's metrics gather over a split, in evaluation mode; of several parts' batches, one part's.

    Raises `ModgraphError` for labels beyond the classes that the model has.
    """
    refuse_labels_beyond(arrays, model.graph)
    model.eval()
    means, metrics = Means(), metrics_of(model.graph, arrays, by, asked)
    with ahead(batches(arrays, part, parts), reads=bool(arrays.on_disk)) as every:
        for indices, rows in every:
            batch = placed(rows, model)
            values, losses = results_of(model, batch, metrics.wanted, model.graph.losses)
            metrics.gather(means, batch, values, losses)
            if metrics.groups:
                metrics.gather_groups(means, batch, values, arrays.groups[str(by)][indices])
    return means


def measure(model: Model, arrays: Arrays, by: str | None = None, asked: Asked | None = None) -> dict[str, float]:
    """The metrics of a model on a split, also of each group of a grouping."""
    return metrics_of(model.graph, arrays, by, asked).values(evaluate(model, arrays, by=by, asked=asked))


def placed(batch: Batch, model: Model) -> Batch:
    """A batch where the model is, in its precision."""
    weight = next(model.parameters(), torch.empty(0))
    return {
        name: sent(each, weight.device, weight.dtype if each.is_floating_point() else None)
        for name, each in batch.items()
    }
