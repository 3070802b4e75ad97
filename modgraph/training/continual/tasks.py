"""The tasks of a continual training: the groups of its data, in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.diagnostics import ModgraphError, did_you_mean, listed
from modgraph.training.continual.errors import NoTasks

MANY = np.iinfo(np.int64).max  # of a task without any label: it comes last


@dataclass(frozen=True)
class Tasks:
    """Splits of examples by task: `names` are the groups of the grouping `by`, in the order in which they come."""

    splits: Mapping[str, Arrays]
    by: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, splits: Mapping[str, Arrays], by: str, targets: Sequence[str]) -> Tasks:
        """The tasks of some data: of labels, the task with the smallest comes first. Raises `ModgraphError`."""
        train = splits[TRAIN]
        if by not in train.groups:
            known = [name for name in train.groups]
            way_out = "give the data tasks: data: {name: task_sequence, …}"
            suggestion = did_you_mean(by, known, "it has: {known}") if known else way_out
            raise ModgraphError([NoTasks(name=by, suggestion=suggestion)])
        labels = [train.values[name] for name in targets if name in train.values]

        def place(name: str) -> tuple[list[int], list[tuple[int, str]]]:
            here = train.groups[by] == name
            return [int(label[here].min(where=label[here] >= 0, initial=MANY)) for label in labels], _natural(name)

        names = sorted(map(str, np.unique(train.groups[by])), key=place)
        return cls(splits, by, tuple(names))

    def __len__(self) -> int:
        return len(self.names)

    def learnt(self, task: int) -> dict[str, Arrays]:
        """What a task is learnt from, and what is measured meanwhile where there is any."""
        parts = {name: self._of(name, task) for name in (TRAIN, VALIDATION) if name in self.splits}
        return {name: arrays for name, arrays in parts.items() if arrays is not None}

    def tested(self, task: int) -> Arrays | None:
        """What a task is tested on, if there is any: its examples of the split `test`, or of the first other one."""
        return None if self._test is None else self._of(self._test, task)

    def tests(self, task: int) -> int:
        """How many examples a task is tested on."""
        return 0 if self._test is None else len(self._rows(self._test, task))

    @property
    def _test(self) -> str | None:
        return next((name for name in ("test", *self.splits) if name in self._unseen()), None)

    def _unseen(self) -> list[str]:
        """The splits with tasks that are neither learnt from nor measured meanwhile."""
        return [name for name in self.splits if name not in (TRAIN, VALIDATION) and self.by in self.splits[name].groups]

    def _of(self, split: str, task: int) -> Arrays | None:
        """The examples of a task in a split, None where there are none."""
        rows = self._rows(split, task)
        return self.splits[split].take(rows) if len(rows) else None

    def _rows(self, split: str, task: int) -> NDArray[np.int64]:
        """Where the examples of a task are in a split."""
        words = self.splits[split].groups.get(self.by)
        return np.flatnonzero(words == self.names[task]) if words is not None else np.empty(0, np.int64)

    def largest(self, target: str, task: int, ignore: int | None = None) -> int:
        """The largest label of a task, in whatever split."""
        return max((label for split in self.splits for label in self._labels(split, target, task, ignore)), default=-1)

    def smallest(self, target: str, task: int, ignore: int | None = None) -> int:
        """The smallest label that a task is learnt from."""
        return min(self._labels(TRAIN, target, task, ignore), default=0)

    def _labels(self, split: str, target: str, task: int, ignore: int | None) -> list[int]:
        arrays = self.splits[split]
        if target not in arrays.values:
            return []
        labels = np.unique(arrays.values[target][self._rows(split, task)])
        return [int(label) for label in labels if label != ignore and label >= 0]

    def __str__(self) -> str:
        return f"{len(self)} tasks by {self.by}: {listed(self.names)}"


def _natural(name: str) -> list[tuple[int, str]]:
    """An order of names in which 10 comes after 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
