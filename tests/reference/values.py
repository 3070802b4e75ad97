"""What a stored graph's values are: types as the graph tells them, and numbers, one array for each example.

An example is computed by itself and cut to its real length, so no value here holds padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Lengths = Mapping[str, int]


class Unsupported(Exception):
    """An op or a construct whose meaning this interpreter does not know."""


@dataclass(frozen=True)
class Axis:
    """A plain axis has no name, one of any length no size; `of` is the axis that it reads a second time."""

    name: str
    size: int | None
    of: str = ""

    def length(self, lengths: Lengths) -> int:
        """How long it is for an example."""
        return lengths[self.of or self.name] if self.size is None else self.size


@dataclass(frozen=True)
class Type:
    """The type of a value: `size` is the vocabulary of a token or the classes of a label; `of` the axis of a length."""

    dtype: str
    axes: tuple[Axis, ...]
    over_batch: bool = False
    size: int | None = None
    of: str = ""
    ends: tuple[Axis, ...] = ()

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Type:
        axes = tuple(map(_axis, record["shape"]))
        over_batch = record.get("per", "example") == "batch"
        ends = tuple(map(_axis, record.get("ends", [])))
        return cls(record["dtype"], axes, over_batch, record.get("size"), record.get("of", ""), ends)

    def place(self, axis: int | str) -> int:
        """Where an axis stands, from 0, given by name or counted from the last."""
        if isinstance(axis, int):
            return axis + len(self.axes)
        return [each.name for each in self.axes].index(axis)

    def shape(self, lengths: Lengths) -> tuple[int, ...]:
        return tuple(axis.length(lengths) for axis in self.axes)


def _axis(record: Any) -> Axis:
    if isinstance(record, int):
        return Axis("", record)
    return (
        Axis(record, None)
        if isinstance(record, str)
        else Axis(record["name"], record.get("size"), record.get("of", ""))
    )


@dataclass(frozen=True)
class Value:
    """An array for each example, or a single one that is of the whole batch."""

    type: Type
    arrays: tuple[Array, ...]

    def of(self, example: int) -> Array:
        return self.arrays[0] if self.type.over_batch else self.arrays[example]

    def only(self, examples: Sequence[int]) -> Value:
        """The same of some examples."""
        return self if self.type.over_batch else Value(self.type, tuple(self.arrays[at] for at in examples))


def cut(array: Array, type_: Type, lengths: Lengths) -> Array:
    """An example's array without the padding behind its real lengths."""
    return array[tuple(slice(axis.length(lengths)) if axis.size is None else slice(None) for axis in type_.axes)]


def places_in(inner: Sequence[Axis], outer: Sequence[Axis]) -> list[int]:
    """Where the axes of a value stand in the result of arithmetic.

    An axis with a name stands where that name does, any other next to the one that follows it, from the last. If
    that gives no order, the others stand over those without a name, from the last.
    """
    names, places, free = [axis.name for axis in outer], list[int](), len(outer)
    for axis in reversed(inner):
        free = names.index(axis.name) if axis.name and axis.name in names else free - 1
        places.insert(0, free)
    meets = all(
        at >= 0 and (outer[at].name in ("", axis.name) or not axis.name) and axis.size in (1, outer[at].size)
        for axis, at in zip(inner, places, strict=True)
    )
    if meets and places == sorted(set(places)):
        return places
    plain = [at for at, axis in enumerate(outer) if not axis.name]
    return [
        names.index(axis.name) if axis.name else plain[at - sum(not each.name for each in inner)]
        for axis, at in zip(inner, [sum(not each.name for each in inner[:at]) for at in range(len(inner))], strict=True)
    ]


def broadcast_over(array: Array, inner: Sequence[Axis], outer: Sequence[Axis]) -> Array:
    """An array with an axis of one place for each of the outer axes that it lacks, in the order of the outer."""
    places = places_in(inner, outer)
    ordered = array.transpose(sorted(range(len(places)), key=places.__getitem__))
    return np.expand_dims(ordered, tuple(at for at in range(len(outer)) if at not in places))
