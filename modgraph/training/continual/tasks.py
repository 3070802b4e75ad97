"""The tasks of a continual training: the groups of its data, in order, and the classes that each needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.diagnostics import ModgraphError, did_you_mean, list_names
from modgraph.ir import Graph, comparisons
from modgraph.ir.edits import Grow
from modgraph.training.errors import NoTasks

MANY = np.iinfo(np.int64).max  # sorts a task without any label last


@dataclass(frozen=True)
class Tasks:
    """Splits of examples by task: `names` are the groups of the grouping `by`, in the order of training."""

    splits: Mapping[str, Arrays]
    by: str
    names: tuple[str, ...]

    @classmethod
    def from_splits(cls, splits: Mapping[str, Arrays], by: str, targets: Sequence[str]) -> Tasks:
        """Return the tasks of some data, ordered by their smallest label. Raises `ModgraphError`."""
        train = splits[TRAIN]
        if by not in train.groups:
            way_out = "add tasks to the data: data: {name: task_sequence, …}"
            suggestion = did_you_mean(by, train.groups, "it has: {known}") if train.groups else way_out
            raise ModgraphError([NoTasks(name=by, suggestion=suggestion)])
        labels = [train.values[name] for name in targets if name in train.values]

        def place(name: str) -> tuple[list[int], list[tuple[int, str]]]:
            here = train.groups[by] == name
            parts = re.split(r"(\d+)", name)  # 10 comes after 9
            natural = [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
            return [int(label[here].min(where=label[here] >= 0, initial=MANY)) for label in labels], natural

        return cls(splits, by, tuple(sorted(map(str, np.unique(train.groups[by])), key=place)))

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return f"{len(self)} tasks by {self.by}: {list_names(self.names)}"

    def training_data(self, task: int) -> dict[str, Arrays]:
        """Return the training examples of a task, and its validation examples if there are any."""
        rows = {name: self._rows(name, task) for name in (TRAIN, VALIDATION)}
        return {name: self.splits[name].take(each) for name, each in rows.items() if len(each)}

    def test_data(self, task: int) -> Arrays | None:
        """Return the test examples of a task, if there are any: of the split `test`, else of the first other one."""
        rows = self._rows(self._test, task)
        return self.splits[self._test].take(rows) if len(rows) else None

    @property
    def tests(self) -> list[int]:
        """The number of test examples of each task."""
        return [len(self._rows(self._test, task)) for task in range(len(self))]

    @property
    def _test(self) -> str:
        """The split with the tests of tasks; "" if there is none."""
        unseen = [name for name in self.splits if name not in (TRAIN, VALIDATION)]
        grouped = [name for name in unseen if self.by in self.splits[name].groups]
        return "test" if "test" in grouped else next(iter(grouped), "")

    def _rows(self, split: str, task: int) -> NDArray[np.int64]:
        """Return the indices of a task's examples in a split."""
        words = self.splits[split].groups.get(self.by) if split in self.splits else None
        return np.flatnonzero(words == self.names[task]) if words is not None else np.empty(0, np.int64)

    def labels(self, target: str, task: int, ignore: int | None, splits: Sequence[str] = ()) -> Iterator[int]:
        """Yield the labels of a task that are classes, in some splits or in all."""
        for split in splits or self.splits:
            if target in self.splits[split].values:
                found = np.unique(self.splits[split].values[target][self._rows(split, task)])
                yield from (int(label) for label in found if label != ignore and label >= 0)


def labels_of(graph: Graph) -> dict[str, int | None]:
    """Return the targets that a loss compares with classes, and the label that each ignores."""
    types = graph.target_types
    return {each.target: each.ignored for each in comparisons(graph) if types[each.target].dtype == "class"}


def find_growth_of_classes(graph: Graph, tasks: Tasks, task: int) -> list[Grow]:
    """Return edits that extend named axes of classes to the labels of a task."""
    needed: dict[str, int] = {}
    for target, ignored in labels_of(graph).items():
        axis = graph.target_types[target].classes
        if axis is not None and axis.name and axis.size is not None:
            by = max(tasks.labels(target, task, ignored), default=-1) + 1 - axis.size
            needed[axis.name] = max(by, needed.get(axis.name, 0))
    return [Grow(axis, by) for axis, by in needed.items() if by > 0]


def find_first_class(graph: Graph, tasks: Tasks, task: int) -> dict[str, int]:
    """Return the first class of a task by target, if all classes of earlier tasks precede it, else 0."""
    found = {}
    for target, ignored in labels_of(graph).items():
        before = (label for at in range(task) for label in tasks.labels(target, at, ignored))
        known = max(before, default=-1) + 1
        smallest = min(tasks.labels(target, task, ignored, [TRAIN]), default=0)
        found[target] = known if smallest >= known else 0
    return found
