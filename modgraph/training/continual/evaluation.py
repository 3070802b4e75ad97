"""What is measured at the end of each task: how right the model is on the test data of all tasks so far."""

from __future__ import annotations

import math
from typing import Any

from modgraph.ir import Graph, class_axes
from modgraph.metrics.compared import accuracies
from modgraph.metrics.metrics import mean_of
from modgraph.training.continual.accuracies import overall
from modgraph.training.continual.tasks import Tasks
from modgraph.training.course import Training


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


def examples(tasks: Tasks) -> list[int]:
    """How many test examples each task has."""
    return [tasks.tests(at) for at in range(len(tasks))]


def modules(graph: Graph) -> dict[str, int]:
    """How many modules the pools have that may grow, by name."""
    return {pool.name: pool.size for pool in map(graph.pool_of, graph.growths())}


def classes(graph: Graph) -> dict[str, int]:
    """How many classes labels have, by the name of their axis."""
    return {name: axis.size for name, axis in class_axes(graph).items() if axis.size is not None}


def record_of(tasks: Tasks, task: int, row: tuple[float, ...], graph: Graph) -> dict[str, Any]:
    """What is written down of the end of a task."""
    names = tasks.names[: task + 1]
    found = {"accuracy": overall(row, examples(tasks)[: task + 1])} if row else {}
    each = dict(zip(names, row, strict=False))
    return {
        "task": names[-1],
        "number": task,
        **found,
        "accuracies": each,
        "modules": modules(graph),
        "classes": classes(graph),
    }


def shown(tasks: Tasks, task: int, row: tuple[float, ...], graph: Graph) -> str:
    """A line for the user."""
    after = f"after task {tasks.names[task]}, {task + 1} of {len(tasks)}"
    how = ", ".join(f"{name} {size}" for name, size in {**modules(graph), **classes(graph)}.items())
    if not row:
        return f"{after}: {how or 'nothing'}; there are no accuracies without test data of each task and labels"
    right = f"accuracy {overall(row, examples(tasks)[: task + 1]):.4g}"
    return f"{after}: {right} ({', '.join(f'{each:.4g}' for each in row)})" + (f"; {how}" if how else "")
