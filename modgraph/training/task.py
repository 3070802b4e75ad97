"""A training as a sequence of tasks: each has its data, so many epochs of them, and an edit of the graph before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.ir import Graph


@dataclass(frozen=True)
class Task:
    """One part of a training. `edit` makes its graph of the one before: it may grow a pool, or add a head.

    The learning rate's schedule, the best epoch and an early stop are each task's own; weights and the state of the
    optimizer go on from task to task.
    """

    splits: Mapping[str, Arrays]
    epochs: int
    edit: Callable[[Graph], Graph] | None = None

    @property
    def data(self) -> Arrays:
        return self.splits[TRAIN]

    @property
    def validation(self) -> Arrays | None:
        return self.splits.get(VALIDATION)

    def graph_after(self, graph: Graph) -> Graph:
        """The graph that is trained in this task, given that of the one before."""
        return graph if self.edit is None else self.edit(graph)
