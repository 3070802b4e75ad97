"""Task-incremental accuracy: each example is classified among the classes of its own task (van de Ven and Tolias, Three
scenarios for continual learning, 2019). Next to the accuracy on all classes it tells what is forgotten from what is
confused between tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.metrics import mean_of, move_to_model
from modgraph.metrics.target_metrics import Accuracy, accuracies
from modgraph.training.continual.tasks import Tasks


def measure_task_incremental(model: Model, tasks: Tasks) -> dict[str, float]:
    """Return the mean over tasks of the accuracy among the classes of each, averaged over targets; nothing where no
    task has labels and test data."""
    found = [mean_of(_measure_task(model, tasks, task)) for task in range(len(tasks))]
    known = mean_of(found)
    return {} if math.isnan(known) else {"task_incremental_accuracy": known}


@torch.no_grad()
def _measure_task(model: Model, tasks: Tasks, task: int) -> Iterator[float]:
    """Yield the accuracy of each target on the test data of a task; NaN where there are no labels."""
    arrays = tasks.test_data(task)
    if arrays is None:
        return
    for metric in accuracies(model.graph):
        classes = sorted({*tasks.labels(metric.target, task, metric.labels.ignored)})
        yield _measure_among(model, arrays, metric, torch.tensor(classes, dtype=torch.long))


def _measure_among(model: Model, arrays: Arrays, metric: Accuracy, classes: Tensor) -> float:
    """Return an accuracy where only some classes can be predicted."""
    model.eval()
    accumulators = Accumulators()
    for _, rows in batches(arrays):
        batch = move_to_model(rows, model)
        (logits,) = model.results(batch, metric.wanted)
        if not metric.compared.binary:
            own = classes.to(logits.device)
            logits = torch.full_like(logits, -math.inf).index_copy(-1, own, logits.index_select(-1, own))
        metric.add(accumulators, batch, [logits])
    return metric.values(accumulators)[metric.name]
