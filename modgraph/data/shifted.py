"""Images that are shifted when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import OnDisk, Scale
from modgraph.data.shifts import Shift


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
