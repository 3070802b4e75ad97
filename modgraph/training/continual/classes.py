"""The classes of a continual training: how many each task needs, and which are of earlier ones."""

from __future__ import annotations

from collections.abc import Iterator

from modgraph.ir import Graph, TargetNode, comparisons
from modgraph.ir.edits.edit import Edit, Freeze, Grow
from modgraph.training.continual.tasks import Tasks


def labels_of(graph: Graph) -> dict[str, int | None]:
    """The targets whose labels a loss of the graph compares with, and of each the label that does not count."""
    types = graph.target_types
    return {each.target: each.ignored for each in comparisons(graph) if types[each.target].dtype == "class"}


def growth_of_classes(graph: Graph, tasks: Tasks, task: int) -> tuple[Grow, ...]:
    """How the axes of classes that have a name grow, so that they hold the labels of a task."""
    needed: dict[str, int] = {}
    for target, ignored in labels_of(graph).items():
        axis = graph.target_types[target].classes
        if axis is not None and axis.name and axis.size is not None:
            by = tasks.largest(target, task, ignored) + 1 - axis.size
            needed[axis.name] = max(by, needed.get(axis.name, 0))
    return tuple(Grow(axis, by) for axis, by in needed.items() if by > 0)


def merge(graph: Graph, learns: tuple[str, ...]) -> tuple[Edit, ...]:
    """The edit that freezes what was added to pools, while classes that were added go on learning."""
    return (Freeze(learns, keeps=tuple(target.name for target in graph.of_kind(TargetNode) if target.grown)),)


def first_of_task(graph: Graph, tasks: Tasks, task: int) -> dict[str, int]:
    """The first class of a task by target, if all classes of tasks before it come before that, else 0."""
    return dict(_firsts(graph, tasks, task))


def _firsts(graph: Graph, tasks: Tasks, task: int) -> Iterator[tuple[str, int]]:
    for target, ignored in labels_of(graph).items():
        known = max((tasks.largest(target, before, ignored) + 1 for before in range(task)), default=0)
        yield target, known if tasks.smallest(target, task, ignored) >= known else 0
