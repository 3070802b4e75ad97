"""Dealing the examples of a split to the tasks of a sequence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import TRAIN, Arrays, DataSet, OnDisk, Scale
from modgraph.data.errors import CannotShift, NoExamples
from modgraph.data.shifts import Shift
from modgraph.data.tasks import UNSHIFTED, Classes, Part
from modgraph.diagnostics import ModgraphError


@dataclass(frozen=True)
class Stored(OnDisk):
    """Images in memory; their values tell them from others where they are `exact`, or else their shape does."""

    values: NDArray[np.float32]
    shape: tuple[int, ...]
    exact: bool

    def take(self, indices: NDArray[Any]) -> Stored:
        return replace(self, values=self.values[indices])

    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        return self.values[indices]

    def digest(self) -> bytes:
        little = np.ascontiguousarray(self.values, "<f4")
        return sha256(little.data if self.exact else str(little.shape).encode()).digest()


@dataclass(frozen=True)
class Shifted(OnDisk):
    """Images, each with the task that it belongs to; those of a task that has no shift stay as they are.

    `examples` [N, 2] are the numbers by which what is random of each is drawn.
    """

    images: OnDisk
    shape: tuple[int, ...]
    scale: Scale
    shifts: Mapping[str, Shift]  # by task
    tasks: NDArray[np.str_]
    examples: NDArray[np.int64]

    def take(self, indices: NDArray[Any]) -> Shifted:
        taken = self.images.take(indices)
        return replace(self, images=taken, tasks=self.tasks[indices], examples=self.examples[indices])

    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        found, tasks, examples = self.images.read(indices), self.tasks[indices], self.examples[indices]
        read = np.array(found, np.float32)
        for task, shift in self.shifts.items():
            rows = tasks == task
            if rows.any():
                light = self.scale.light(found[rows])
                read[rows] = self.scale.scaled(shift.shifted(light, examples[rows]))
        return read

    def digest(self) -> bytes:
        """What is read, and what is done with it: what comes of that differs in its last bits elsewhere."""
        plan = {task: shift.plain() for task, shift in sorted(self.shifts.items())}
        whole = sha256(self.images.digest())
        whole.update(json.dumps([plan, self.tasks.tolist()]).encode())
        whole.update(np.ascontiguousarray(self.examples, "<i8").data)
        return whole.digest()


TASK = "task"  # the grouping that names each example's task
ROUNDING = 1e-3  # by which light may leave 0 to 1


@dataclass(frozen=True)
class Dealer:
    """Deals examples of a data set: their classes are in `target`, the images that shifts move in `input`."""

    data: DataSet
    classes: Classes
    parts: Sequence[Part]
    target: str
    input: str
    per_class: int | None

    def dealt(self, arrays: Arrays, split: str) -> Arrays:
        """The examples of each task after those of the one before, numbered anew. Raises `ModgraphError`."""
        rows = [self._rows(arrays.values[self.target], part, split) for part in self.parts]
        indices = np.concatenate([each for of_part in rows for each in of_part])
        sizes = [len(each) for of_part in rows for each in of_part]
        words = np.repeat([part.name for part in self.parts], [sum(map(len, of_part)) for of_part in rows])
        taken = arrays.take(indices)
        dealt = replace(
            taken,
            values={**taken.values, self.target: np.repeat(np.arange(len(sizes)), sizes)},
            groups={**taken.groups, TASK: words},
            orders={**taken.orders, TASK: tuple(part.name for part in self.parts)},
        )
        return self._shifted(dealt, split, indices)

    def _rows(self, labels: NDArray[Any], part: Part, split: str) -> list[NDArray[np.int64]]:
        """The examples of each class of a task: one of each class to learn from, of the task to measure."""
        most = self.per_class if split == TRAIN else None
        found = [np.flatnonzero(labels == number)[:most] for number in part.classes]
        empty = [number for number, rows in zip(part.classes, found, strict=True) if not len(rows)]
        if empty and (split == TRAIN or len(empty) == len(found)):
            what = f"class {self.classes.word(empty[0])}" if split == TRAIN else f"task {part.name}"
            raise ModgraphError([NoExamples(key=part.key, split=split, what=what)])
        return found

    def _shifted(self, arrays: Arrays, split: str, indices: NDArray[np.int64]) -> Arrays:
        """The same with the images of tasks that have a shift read through it. Raises `ModgraphError`."""
        shifts = {part.name: part.shift for part in self.parts if part.shift != UNSHIFTED()}
        if not shifts:
            return arrays
        images = self._images(arrays, next(iter(shifts)))
        numbers = np.stack(np.broadcast_arrays(crc32(split.encode()), indices), axis=1)
        shifted = Shifted(images, images.shape, self.data.scale(), shifts, arrays.groups[TASK], numbers)
        values = {name: array for name, array in arrays.values.items() if name != self.input}
        return replace(arrays, values=values, on_disk={**arrays.on_disk, self.input: shifted})

    def _images(self, arrays: Arrays, task: str) -> OnDisk:
        """The images that shifts move. Raises `ModgraphError`."""
        if (reason := self._no_images(arrays)) is not None:
            raise ModgraphError([CannotShift(key=f"data.tasks.{task}.shift", input=self.input, reason=reason)])
        if self.input in arrays.on_disk:
            return arrays.on_disk[self.input]
        values = arrays.values[self.input]
        return Stored(values, values.shape[1:], self.data.is_exact())

    def _no_images(self, arrays: Arrays) -> str | None:
        """What is wrong with the images of a split, or None; those on disk are taken at their word."""
        values = arrays.values.get(self.input)
        shape = arrays.on_disk[self.input].shape if values is None and self.input in arrays.on_disk else None
        shape = values.shape[1:] if values is not None else shape
        if shape is None:
            return "is nothing that the data have"
        if len(shape) != 3:
            return f"has the shape {list(shape)}, not [channels, height, width]"
        if values is None:
            return None
        light = self.data.scale().light(values)
        least, most = float(light.min()), float(light.max())
        outside = least < -ROUNDING or most > 1 + ROUNDING
        return f"holds {least:.3g} to {most:.3g}, where 0 is black and 1 is white" if outside else None
