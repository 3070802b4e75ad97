"""A sequence of tasks from another data set: each task has some of its classes, and may shift their images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from modgraph.data.declaration import TRAIN, Arrays, DataSet, OnDisk, check_splits, shuffle
from modgraph.data.errors import CannotShift, ClassTwice, NoExamples, UnknownClass, does_not_fit
from modgraph.data.shifts import Shift, Shifted, Unshifted
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, InputNode, TargetNode
from modgraph.recipes.schema import Section

if TYPE_CHECKING:
    from numpy.typing import NDArray

TASK = "task"  # the grouping that names each example's task
ROUNDING = 1e-3  # by which light may lie outside 0 to 1


class TaskOfSequence(Section):
    """One task: its classes, and the shift of their images."""

    classes: tuple[int | str, ...] = setting(doc="classes of the task, by number or name")
    shift: Shift = Unshifted()

    def contradiction(self) -> str | None:
        return None if self.classes else "has no classes"


@dataclass(frozen=True)
class Label:
    """A class of a task: its number in the data set within. `key` is the key of the recipe that names it."""

    task: str
    number: int
    shift: Shift
    key: str


Words = Mapping[int, str]  # the name of each class by number, or the number as text


class TaskSequence(DataSet, name="task_sequence"):
    """Another data set as a sequence of tasks, either listed or of so many classes each.

    Labels are renumbered in the order in which classes appear. A class that a later task has with another shift has
    another label there. The grouping `task` names the task of each example. All splits of the data set within are
    divided in this way. A sequence of one task is a subset of classes.
    """

    of: DataSet = setting(doc="the data set that provides the classes")
    tasks: Mapping[str, TaskOfSequence] | None = setting(None, doc="the tasks by name: classes, and optionally a shift")
    classes_per_task: int | None = setting(
        None, min=1, doc="classes of each task, instead of tasks; the last task gets the remaining ones"
    )
    classes: tuple[int | str, ...] = setting((), doc="the classes for classes_per_task; all if not given")
    order: str = setting(
        "random", choices=("random", "given"), doc="the order in which classes_per_task assigns classes"
    )
    per_class: int | None = setting(None, min=1, doc="train on so many examples of each class only, the first ones")
    target: str = setting("label", doc="the target with the classes")
    input: str = setting("image", doc="the input with the images, which shifts transform")
    seed: int = setting(0, min=0, doc="seed of the order of classes")

    def contradiction(self) -> str | None:
        if isinstance(self.of, TaskSequence):
            return "must not be a sequence of tasks of its own"
        if self.tasks is not None and self.classes_per_task is not None:
            return "must have tasks or classes_per_task, not both"
        if self.tasks is not None and self.classes:
            return "must not have classes with tasks: they go with classes_per_task"
        return None if self.tasks or self.classes_per_task else "needs tasks or classes_per_task"

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        import numpy as np

        type_ = graph.target_types.get(self.target)
        if type_ is None or type_.dtype != "class" or type_.shape:
            given = type_ or "no such target"
            way_out = f"declare: target {self.target}: class[COUNT], or name another target: -s data.target=NAME"
            reason = f'the target "{self.target}" must be one class for each example, not {given}'
            raise does_not_fit(reason, way_out)
        found = self.of.splits(_drop_class_counts(graph))
        names = self.of.description().get("classes", {}).get(self.target, ())
        words = dict(enumerate(names)) or {at: str(at) for at in np.unique(found[TRAIN].values[self.target]).tolist()}
        labels = self._labels(words)
        dealt = {split: shuffle(self._deal(arrays, split, labels, words)) for split, arrays in found.items()}
        return check_splits(dealt, graph)

    def is_exact(self) -> bool:
        return self.of.is_exact()

    def follows(self) -> Mapping[str, str]:
        return self.of.follows()

    def extras(self) -> tuple[str, ...]:
        return self.of.extras()

    def files(self) -> tuple[str, ...]:
        return self.of.files()

    def keeps(self, graph: Graph) -> dict[str, bytes]:
        return self.of.keeps(_drop_class_counts(graph))

    def with_kept_files(self, folder: Path) -> DataSet:
        return replace(self, of=self.of.with_kept_files(folder))

    def description(self) -> dict[str, Any]:
        found = self.of.description()
        classes = dict(found.get("classes", {}))
        if words := dict(enumerate(classes.get(self.target, ()))):
            labels = [(words[each.number], each.shift) for each in self._labels(words)]
            classes[self.target] = [
                word if shift == Unshifted() else f"{word} ({shift.name})" for word, shift in labels
            ]
        return {**found, "classes": classes}

    def _labels(self, words: Words) -> list[Label]:
        """Return the class of each label: from the tasks of the recipe, or so many classes each. Raises
        `ModgraphError`."""
        import numpy as np

        key = "data.classes"
        if self.tasks is not None:
            keys = {name: f"data.tasks.{name}.classes" for name in self.tasks}
            labels = [
                Label(name, number, task.shift, keys[name])
                for name, task in self.tasks.items()
                for number in _numbers_of(task.classes, words, keys[name])
            ]
        else:
            assert self.classes_per_task is not None, "there is one of the two"
            numbers = np.array(_numbers_of(self.classes or list(words), words, key))
            if self.order == "random":
                numbers = np.random.default_rng((self.seed, 6)).permutation(numbers)
            places = enumerate(numbers.tolist(), start=self.classes_per_task)
            labels = [Label(str(at // self.classes_per_task), number, Unshifted(), key) for at, number in places]
        taken: dict[tuple[int, Shift], Label] = {}
        for each in labels:
            before = taken.setdefault((each.number, each.shift), each)
            if before is not each:
                raise ModgraphError([ClassTwice(key=each.key, name=words[each.number], task=before.task)])
        return labels

    def _deal(self, arrays: Arrays, split: str, labels: Sequence[Label], words: Words) -> Arrays:
        """Return the examples task by task, their images shifted. Raises `ModgraphError`, also where a task, or a class
        for training, has none."""
        import numpy as np

        most = self.per_class if split == TRAIN else None
        rows = [np.flatnonzero(arrays.values[self.target] == each.number)[:most] for each in labels]
        sizes, indices = list(map(len, rows)), np.concatenate(rows)
        tasks = np.repeat([each.task for each in labels], sizes)
        for each, size in zip(labels, sizes, strict=True):
            if not size and (split == TRAIN or each.task not in tasks.tolist()):
                what = f"class {words[each.number]}" if split == TRAIN else f"task {each.task}"
                raise ModgraphError([NoExamples(key=each.key, split=split, what=what)])
        taken = arrays.take(indices)
        values = {**taken.values, self.target: np.repeat(np.arange(len(sizes)), sizes)}
        on_disk = dict(taken.on_disk)
        shifts = {each.task: each.shift for each in labels if each.shift != Unshifted()}
        if shifts:
            images = self._images(taken, next(iter(shifts)))
            numbers = np.stack(np.broadcast_arrays(crc32(split.encode()), indices), axis=1)
            shape = images.shape if isinstance(images, OnDisk) else images.shape[1:]
            exact, scale = self.of.is_exact(), self.of.scale()
            on_disk[self.input] = Shifted(shape, images, exact, scale, shifts, tasks, numbers)
            values.pop(self.input, None)
        orders = {**taken.orders, TASK: tuple(dict.fromkeys(each.task for each in labels))}
        return replace(taken, values=values, groups={**taken.groups, TASK: tasks}, on_disk=on_disk, orders=orders)

    def _images(self, arrays: Arrays, task: str) -> OnDisk | NDArray[Any]:
        """Return the images to shift; those on disk have the scale of their data set. Raises `ModgraphError`."""
        import numpy as np

        values = arrays.values.get(self.input)
        images = arrays.on_disk.get(self.input) if values is None else values
        reason, shape = "is not in the data", () if images is None else images.shape[values is not None :]
        if images is not None and len(shape) != 3:
            reason = f"has the shape {list(shape)}, not [channels, height, width]"
        elif images is not None:
            light = np.zeros(1) if values is None else self.of.scale().light(values)
            least, most = float(light.min()), float(light.max())
            if least >= -ROUNDING and most <= 1 + ROUNDING:
                return images
            reason = f"has {least:.3g} to {most:.3g}, not 0 for black to 1 for white"
        raise ModgraphError([CannotShift(key=f"data.tasks.{task}.shift", input=self.input, reason=reason)])


def _numbers_of(classes: Sequence[int | str], words: Words, key: str) -> list[int]:
    """Return the numbers of classes that are given by number or name. Raises `ModgraphError`."""
    numbers: dict[int | str, int] = {word: number for number, word in words.items()} | {each: each for each in words}
    for each in classes:
        if each not in numbers:
            known = words.values() if isinstance(each, str) else map(str, words)
            suggestion = did_you_mean(str(each), list(known), "its classes are: {known}")
            raise ModgraphError([UnknownClass(key=key, name=str(each), suggestion=suggestion)])
    return [numbers[each] for each in classes]


def _drop_class_counts(graph: Graph) -> Graph:
    """Return the inputs and targets of a graph, with any number of classes: the data set within has other labels."""
    asked = Graph(graph.name)
    for node in (*graph.nodes_of(InputNode), *graph.nodes_of(TargetNode)):
        (type_,) = node.types
        asked.add(replace(node, types=(replace(type_, size=None) if type_.dtype == "class" else type_,)))
    return asked
