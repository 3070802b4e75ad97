"""Measuring a model on a split: means of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.training.data import Arrays
from modgraph.training.means import Means
from modgraph.training.metrics import Metrics

Batch = dict[str, Tensor]
EXAMPLES = 256  # a batch of an evaluation


def results_of(model: Model, batch: Mapping[str, Tensor], wanted: list[Any]) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Some results of a batch, for the metrics, and its losses: [B] of one per example, one number over the batch."""
    losses = model.graph.losses
    results = model.results(batch, (*wanted, *losses.values()))
    return results[: len(wanted)], dict(zip(losses, results[len(wanted) :], strict=True))


@torch.no_grad()
def evaluate(model: Model, arrays: Arrays, part: int = 0, parts: int = 1) -> Means:
    """What a model's metrics gather over a split, in evaluation mode; of several parts' batches, one part's."""
    model.eval()
    means, metrics = Means(), Metrics(model.graph)
    for batch in list(batches(arrays))[part::parts]:
        batch = placed(batch, model)
        metrics.gather(means, batch, *results_of(model, batch, metrics.wanted))
    return means


def measure(model: Model, arrays: Arrays) -> dict[str, float]:
    """The metrics of a model on a split."""
    return Metrics(model.graph).values(evaluate(model, arrays))


def placed(batch: Batch, model: Model) -> Batch:
    """A batch where the model is, in its precision."""
    weight = next(model.parameters(), torch.empty(0))
    return {
        name: each.to(weight.device, weight.dtype if each.is_floating_point() else None) for name, each in batch.items()
    }


def batches(arrays: Arrays) -> Iterator[Batch]:
    """The examples in batches of a size that does not depend on how many there are."""
    for start in range(0, len(arrays), EXAMPLES):
        yield {name: torch.from_numpy(array[start : start + EXAMPLES]) for name, array in arrays.values.items()}
