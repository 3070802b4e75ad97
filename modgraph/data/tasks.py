"""What the tasks of a sequence are: which classes each has, and what is done to their images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modgraph.data.errors import ClassTwice, UnknownClass
from modgraph.data.shifts import Shift, Unshifted
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.recipes.schema import Section

UNSHIFTED: Any = Unshifted


class TaskOfSequence(Section):
    """One task: its classes, and what is done to their images."""

    classes: tuple[int | str, ...] = setting(doc="its classes, by number or by name")
    shift: Shift = UNSHIFTED()

    def contradiction(self) -> str | None:
        return None if self.classes else "has no classes"


@dataclass(frozen=True)
class Classes:
    """The classes of a data set: their numbers, and by number their names where they have any."""

    numbers: tuple[int, ...]
    names: tuple[str, ...] = ()

    def word(self, number: int) -> str:
        """What a class is called."""
        return self.names[number] if self.names else str(number)

    def chosen(self, told: Sequence[int | str], key: str) -> tuple[int, ...]:
        """The numbers of classes that are told by number or name. Raises `ModgraphError`."""
        return tuple(self._number(each, key) for each in told)

    def _number(self, told: int | str, key: str) -> int:
        if isinstance(told, int) and told in self.numbers:
            return told
        if isinstance(told, str) and told in self.names:
            return self.names.index(told)
        known = self.names if isinstance(told, str) and self.names else tuple(map(str, self.numbers))
        suggestion = did_you_mean(str(told), known, "its classes are: {known}")
        raise ModgraphError([UnknownClass(key=key, name=str(told), suggestion=suggestion)])


@dataclass(frozen=True)
class Part:
    """A task of a sequence: the classes it takes of the data set within, whose new labels follow each other from
    `first`. `key` is where the recipe tells them."""

    name: str
    classes: tuple[int, ...]
    shift: Shift
    first: int
    key: str


def parts_of(tasks: Mapping[str, TaskOfSequence], classes: Classes) -> list[Part]:
    """The tasks that a recipe tells, in its order. Raises `ModgraphError`."""
    parts: list[Part] = []
    for name, task in tasks.items():
        key = f"data.tasks.{name}.classes"
        parts.append(Part(name, classes.chosen(task.classes, key), task.shift, _next(parts), key))
    _check_once(parts, classes)
    return parts


def equal_parts(numbers: Sequence[int], size: int, classes: Classes) -> list[Part]:
    """Tasks of so many classes each, in the order of these; the last has what is left. Raises `ModgraphError`."""
    key, shift = "data.classes", UNSHIFTED()
    starts = enumerate(range(0, len(numbers), size), start=1)
    parts = [Part(str(at), tuple(numbers[start : start + size]), shift, start, key) for at, start in starts]
    _check_once(parts, classes)
    return parts


def _next(parts: Sequence[Part]) -> int:
    """The label of the class that comes after those of some tasks."""
    return sum(len(part.classes) for part in parts)


def _check_once(parts: Sequence[Part], classes: Classes) -> None:
    taken: dict[tuple[int, Shift], Part] = {}
    for part in parts:
        for number in part.classes:
            before = taken.get((number, part.shift))
            if before is not None:
                raise ModgraphError([ClassTwice(key=part.key, name=classes.word(number), task=before.name)])
            taken[number, part.shift] = part
