"""A sequence of tasks, made of another data set: each task has some of its classes, and perhaps shifts their images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.dealing import Dealer
from modgraph.data.declaration import TRAIN, Arrays, DataSet, check, mixed
from modgraph.data.errors import DataDoesNotFit
from modgraph.data.tasks import UNSHIFTED, Classes, Part, TaskOfSequence, equal_parts, parts_of
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, InputNode, TargetNode


class TaskSequence(DataSet):
    """Another data set as a sequence of tasks: those that are told, or so many classes for each.

    Labels are numbered anew in the order in which classes appear; a class that a later task takes with another shift
    has another label there. The grouping `task` names the task of each example. All splits of the data set within are
    dealt so. A sequence of one task is a choice of classes.
    """

    name = "task_sequence"

    of: DataSet = setting(doc="the data set whose classes are dealt")
    tasks: Mapping[str, TaskOfSequence] | None = setting(
        None, doc="each task by its name: its classes, perhaps a shift"
    )
    classes_per_task: int | None = setting(None, min=1, doc="classes of each task, instead; the last has what is left")
    classes: tuple[int | str, ...] = setting((), doc="which are dealt by classes_per_task; all if none is told")
    order: str = setting("random", choices=("random", "given"), doc="in which classes_per_task deals them")
    per_class: int | None = setting(None, min=1, doc="learn from so many examples of each class only, the first")
    target: str = setting("label", doc="the target that holds the classes")
    input: str = setting("image", doc="the input that holds the images, which shifts move")
    seed: int = setting(0, min=0, doc="of the order of classes")

    def contradiction(self) -> str | None:
        if isinstance(self.of, TaskSequence):
            return "is a sequence of a sequence of tasks"
        if self.tasks is not None and self.classes_per_task is not None:
            return "has both tasks and classes_per_task"
        if self.tasks is not None and self.classes:
            return "has both tasks and classes, which go with classes_per_task"
        return None if self.tasks or self.classes_per_task else "has neither tasks nor classes_per_task"

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        _check_target(graph, self.target)
        found = self.of.splits(_unbounded(graph))
        classes = self._classes(found[TRAIN].values[self.target])
        dealer = Dealer(self.of, classes, self._parts(classes), self.target, self.input, self.per_class)
        dealt = {split: dealer.dealt(arrays, split) for split, arrays in found.items()}
        return {split: check(mixed(arrays), graph, split) for split, arrays in dealt.items()}

    def is_exact(self) -> bool:
        return self.of.is_exact()

    def files(self) -> tuple[str, ...]:
        return self.of.files()

    def keeps(self, graph: Graph) -> dict[str, bytes]:
        return self.of.keeps(_unbounded(graph))

    def kept_in(self, folder: Path) -> DataSet:
        return replace(self, of=self.of.kept_in(folder))

    def description(self) -> dict[str, Any]:
        found = self.of.description()
        named, classes = dict(found.get("classes", {})), self._classes(None)
        if classes.names:
            parts = self._parts(classes)
            named[self.target] = [_name(classes.word(each), part) for part in parts for each in part.classes]
        return {**found, "classes": named}

    def _classes(self, labels: NDArray[Any] | None) -> Classes:
        """The classes of the data set within: those that it names, or those that some labels tell."""
        names = tuple(self.of.description().get("classes", {}).get(self.target, ()))
        numbers = range(len(names)) if names or labels is None else np.unique(labels).tolist()
        return Classes(tuple(numbers), names)

    def _parts(self, classes: Classes) -> list[Part]:
        """The tasks. Raises `ModgraphError`."""
        if self.tasks is not None:
            return parts_of(self.tasks, classes)
        assert self.classes_per_task is not None, "one of the two is told"
        numbers = np.array(classes.chosen(self.classes, "data.classes") if self.classes else classes.numbers)
        if self.order == "random":
            numbers = np.random.default_rng((self.seed, 6)).permutation(numbers)
        return equal_parts(numbers.tolist(), self.classes_per_task, classes)


def _name(word: str, part: Part) -> str:
    """The name of a class as a task shows it."""
    return word if part.shift == UNSHIFTED() else f"{word} ({part.shift.name})"


def _check_target(graph: Graph, target: str) -> None:
    type_ = graph.target_types.get(target)
    if type_ is None or type_.dtype != "class" or type_.shape:
        reason = f'the target "{target}" is to be one class for each example; the spec has {type_ or "no such target"}'
        way_out = f"declare: target {target}: class[COUNT], or name another target: -s data.target=NAME"
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])


def _unbounded(graph: Graph) -> Graph:
    """What a graph asks of data, whatever the number of its classes: the labels of the data set within are others."""
    asked = Graph(graph.name)
    for node in (*graph.of_kind(InputNode), *graph.of_kind(TargetNode)):
        (type_,) = node.types
        asked.add(replace(node, types=(replace(type_, size=None) if type_.dtype == "class" else type_,)))
    return asked
