"""What a continual training comes to: how right the model is on the test data of all tasks so far, after each task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean
from typing import Any

from modgraph.ir import Graph, class_axes
from modgraph.metrics.compared import accuracies
from modgraph.metrics.metrics import mean_of
from modgraph.training.continual.tasks import Tasks
from modgraph.training.course import Training

Accuracies = Sequence[Sequence[float]]  # [tasks learnt, tasks measured]: after task t those on tasks 0..t


def overall(after: Sequence[float], examples: Sequence[int]) -> float:
    """The accuracy on all examples of the first tasks, given that on each and how many examples each task has."""
    counts = examples[: len(after)]
    return sum(each * count for each, count in zip(after, counts, strict=True)) / sum(counts)


def average_accuracy(found: Accuracies, examples: Sequence[int]) -> float:
    """Ā: the mean, over the moments after each task, of the accuracy on all tasks so far."""
    return mean(overall(after, examples) for after in found)


def last_accuracy(found: Accuracies, examples: Sequence[int]) -> float:
    """A_N: the accuracy on all tasks after the last."""
    return overall(found[-1], examples)


def forgetting(found: Accuracies) -> float:
    """How much less right the model is in the end on each task but the last than it was at best, in the mean."""
    last = found[-1]
    best = [max(after[task] for after in found[:-1] if task < len(after)) for task in range(len(last) - 1)]
    return mean(most - now for most, now in zip(best, last[:-1], strict=True)) if best else 0.0


def measured(training: Training, tasks: Tasks, task: int) -> tuple[float, ...]:
    """The accuracy on each task so far, the mean over targets where there are several; none where there are no labels,
    or a task has no test data. Raises `ModgraphError`."""
    tested = [each for at in range(task + 1) if (each := tasks.tested(at)) is not None]
    names = [metric.name for metric in accuracies(training.graph)]
    if len(tested) <= task or not names:
        return ()
    model = training.model_now()
    found = [training.measured(model, arrays) for arrays in tested]
    means = (mean_of(each[name] for name in names) for each in found)
    return tuple(0.0 if math.isnan(value) else value for value in means)


def modules(graph: Graph) -> dict[str, int]:
    """How many modules the pools have that may grow, by name."""
    return {pool.name: pool.size for pool in map(graph.pool_of, graph.growths())}


def classes(graph: Graph) -> dict[str, int]:
    """How many classes labels have, by the name of their axis."""
    return {name: axis.size for name, axis in class_axes(graph).items() if axis.size is not None}


def record_of(tasks: Tasks, task: int, row: Sequence[float], graph: Graph) -> dict[str, Any]:
    """What is written down of the end of a task."""
    return {
        "task": tasks.names[task],
        "number": task,
        **({"accuracy": overall(row, tasks.tests)} if row else {}),
        "accuracies": dict(zip(tasks.names, row, strict=False)),
        "modules": modules(graph),
        "classes": classes(graph),
    }


def shown(tasks: Tasks, task: int, row: Sequence[float], graph: Graph) -> str:
    """A line for the user."""
    after = f"after task {tasks.names[task]}, {task + 1} of {len(tasks)}"
    how = ", ".join(f"{name} {size}" for name, size in {**modules(graph), **classes(graph)}.items())
    if not row:
        return f"{after}: {how or 'nothing'}; there are no accuracies without test data of each task and labels"
    right = f"accuracy {overall(row, tasks.tests):.4g}"
    return f"{after}: {right} ({', '.join(f'{each:.4g}' for each in row)})" + (f"; {how}" if how else "")
