"""Evaluation in a continual training: novelty of a task's batches, accuracy on all tasks so far, and the parameters of
the spec that give the grown model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import RandomOrder, batch_of
from modgraph.declare import Role
from modgraph.ir import Graph, Result, list_class_axes, list_padding
from modgraph.ir.edits import Grow, Mark, replay_edits
from modgraph.metrics.metrics import mean_of, move_to_model
from modgraph.metrics.target_metrics import accuracies
from modgraph.nn.padding import apply_mask, valid_along
from modgraph.store.architecture import SpecOfRun
from modgraph.store.run_directory import RunDirectory
from modgraph.training.algorithms.algorithm import Training
from modgraph.training.continual.tasks import Tasks
from modgraph.types import Misfit

Accuracies = Sequence[Sequence[float]]  # [tasks learnt, tasks measured]: after task t, those on tasks 0..t


def overall(after: Sequence[float], examples: Sequence[int]) -> float:
    """Return the accuracy on all examples of the first tasks, from that on each and the number of examples of each."""
    counts = examples[: len(after)]
    return sum(each * count for each, count in zip(after, counts, strict=True)) / sum(counts)


def summary(found: Accuracies, examples: Sequence[int]) -> dict[str, float]:
    """Return the average accuracy Ā, the mean over tasks of the accuracy on all so far; the last accuracy A_N; and
    forgetting, the mean over all tasks but the last of their best accuracy minus the final one."""
    so_far, last = [overall(after, examples) for after in found], found[-1]
    best = [max(after[task] for after in found[:-1] if task < len(after)) for task in range(len(last) - 1)]
    forgetting = mean(most - now for most, now in zip(best, last[:-1], strict=True)) if best else 0.0
    return {"average_accuracy": mean(so_far), "last_accuracy": so_far[-1], "forgetting": forgetting}


def measure_tasks(training: Training, tasks: Tasks, task: int) -> tuple[float, ...]:
    """Return the accuracy on each task so far, averaged over targets; none where there are no labels, or a task has no
    test data. Raises `ModgraphError`."""
    tested = [each for at in range(task + 1) if (each := tasks.test_data(at)) is not None]
    names = [metric.name for metric in accuracies(training.graph)]
    if len(tested) <= task or not names:
        return ()
    model = training.model_now()
    found = [training.measure(model, arrays) for arrays in tested]
    averages = (mean_of(each[name] for name in names) for each in found)
    return tuple(0.0 if math.isnan(value) else value for value in averages)


def modules(graph: Graph) -> dict[str, int]:
    """Return the number of modules of each pool that may grow."""
    return {pool.name: pool.size for pool in map(graph.pool_of, graph.growths())}


def classes(graph: Graph) -> dict[str, int]:
    """Return the number of classes by the name of their axis."""
    return {name: axis.size for name, axis in list_class_axes(graph).items() if axis.size is not None}


def describe_task(tasks: Tasks, task: int, row: Sequence[float], graph: Graph) -> str:
    """Return a line for the user."""
    after = f"after task {tasks.names[task]}, {task + 1} of {len(tasks)}"
    how = ", ".join(f"{name} {size}" for name, size in {**modules(graph), **classes(graph)}.items())
    if not row:
        return f"{after}: {how or 'nothing'}; accuracies need test data and labels of each task"
    right = f"accuracy {overall(row, tasks.tests):.4g}"
    return f"{after}: {right} ({', '.join(f'{each:.4g}' for each in row)})" + (f"; {how}" if how else "")


def find_grown_parameters(directory: RunDirectory, began: Graph, grown: Graph) -> dict[str, Any] | None:
    """Return the parameters that differ by which a run's spec gives the grown graph, None if no parameters do.

    Frozen parts and counts of added modules are ignored. The search elaborates the spec with larger parameters.
    """
    missing, spec = _find_grown_axes(began, grown), SpecOfRun(directory)
    if not missing:
        return {}
    plain = spec.graph(began.parameters)
    if plain is None:
        return None
    values, left = dict(began.parameters), dict(missing)
    for name, value in began.parameters.items():
        for place in range(len(value)) if isinstance(value, list | tuple) else (None,):
            if type(value if place is None else value[place]) is not int:
                continue
            graph = spec.graph(_increase(began.parameters, name, place, 1))
            moved = {} if graph is None else _find_grown_axes(plain, graph)
            by = {left.get(axis) for axis in moved}
            if set(moved.values()) == {1} and len(by) == 1 and None not in by:
                values = _increase(values, name, place, by.pop() or 0)
                left = {axis: count for axis, count in left.items() if axis not in moved}
    found = spec.graph(values)
    with suppress(Misfit):  # ignoring what is frozen or counts as added
        edited = replay_edits(plain, [Grow(axis, by) for axis, by in missing.items()])
        if found is not None and not left and Mark().apply(edited) == Mark().apply(found):
            return {name: value for name, value in values.items() if value != began.parameters[name]}
    return None


def _find_grown_axes(before: Graph, after: Graph) -> dict[str, int]:
    """Return by how much axes that can grow, those of pools and of classes, are longer in `after`."""
    sizes, known = (
        {pool.axis.name: pool.size for pool in graph.pools().values()} | classes(graph) for graph in (after, before)
    )
    return {name: size - known[name] for name, size in sizes.items() if size != known.get(name, size)}


def _increase(values: Mapping[str, Any], name: str, place: int | None, more: int) -> dict[str, Any]:
    """Return parameters with one number, or one in a list, increased."""
    if place is None:
        return {**values, name: values[name] + more}
    items = list(values[name])
    items[place] += more
    return {**values, name: items}


@dataclass(frozen=True)
class Scan:
    """The result of a scan: the growth node that fired first, the batch, and for each growth node the novelty of
    batches to the modules of its pool, [batches, modules], where its router records it."""

    grows: str | None
    batch: int | None
    novelty: Mapping[str, list[list[float]]]


@torch.no_grad()
def scan_batches(
    model: Model, arrays: Arrays, growths: Sequence[str], batch: int, seed: int, number: int, always: bool = False
) -> Scan:
    """Scan random batches of examples until a growth node fires; with `always`, it fires at the first. Batches have
    equal size, since few examples are novel by chance."""
    graph = model.eval().graph
    nodes = [node for node in graph.growths() if node.name in growths]
    records: dict[str, list[Result]] = {}  # records of novelty, one for each route of a growth node's router
    for node in nodes:
        decisions = graph.decisions(graph.router_of(node).name)
        named = [(each, each.record_as(Role.NOVELTY)) for each in decisions]
        records[node.name] = [each.results[name] for each, name in named if name is not None]
    whens = {node.name: graph.inputs(node.name)["when"] for node in nodes}
    wanted = (*whens.values(), *(each for several in records.values() for each in several))
    novelty: dict[str, list[list[float]]] = {name: [] for name in whens}
    for at, indices in enumerate(RandomOrder(arrays, batch, use="detection").draw(seed, number)):
        if len(indices) < min(batch, len(arrays)):
            continue
        values = move_to_model(batch_of(arrays, indices.numpy()), model)
        found = iter(model.results(values, wanted))
        grows = [name for name in whens if bool(next(found).flatten()[0] != 0) or always]
        for name, several in records.items():
            if several:
                averages = [_mean_over_batch(graph, each, next(found), values) for each in several]
                novelty[name].append([float(each) for each in torch.stack(averages).mean(0)])
        if grows:
            return Scan(grows[0], at, novelty)
    return Scan(None, None, novelty)


def _mean_over_batch(graph: Graph, record: Result, value: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the mean of a record over a batch and its tokens, without padding: [M]."""
    lengths = {at: batch[name] for at, name in list_padding(graph, graph.type_of(record)) if name in batch}
    mask = valid_along(value, lengths)
    counted = torch.ones_like(value) if mask is None else mask.expand_as(value)
    every = tuple(range(value.dim() - 1))
    return apply_mask(value.double(), mask).sum(every) / counted.sum(every)
