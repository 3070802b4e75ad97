"""Axes and types of values: what an axis is called and how long it is, and what one example holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

DType = Literal["float", "token", "class", "length"]


@dataclass(frozen=True)
class Axis:
    """A plain axis has a size and no name; one of any length has a name and no size; that of a pool's modules has the
    pool's path for a name, and as many positions as there are modules."""

    size: int | None
    name: str = ""

    def __post_init__(self) -> None:
        assert self.name or self.size is not None, "an axis has a name or a size"

    @property
    def is_padded(self) -> bool:
        """Whether examples differ in their length along it, so that it may hold padding."""
        return self.size is None

    def __str__(self) -> str:
        """`5`, `time`, `experts=3`."""
        if not self.name:
            return str(self.size)
        return self.name if self.size is None else f"{self.name}={self.size}"

    def as_json(self) -> Any:
        """A number, a name, or an object of both."""
        if not self.name:
            return self.size
        return self.name if self.size is None else {"name": self.name, "size": self.size}


Shape = tuple[Axis, ...]
ONE = Axis(1)


def shape_of(axes: Sequence[Axis | int]) -> Shape:
    """Axes as written: a number is a plain axis."""
    return tuple(Axis(axis) if isinstance(axis, int) else axis for axis in axes)


def format_shape(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def may_meet(left: Axis, right: Axis) -> bool:
    """Whether two axes are the same, or one is plain and as long as the other: it takes on the other's identity."""
    return left == right or (left.size == right.size and not (left.name and right.name))


def meet_axes(left: Axis, right: Axis) -> Axis:
    """What two axes that may meet become."""
    return left if left.name else right


def shapes_meet(left: Shape, right: Shape) -> bool:
    return len(left) == len(right) and all(map(may_meet, left, right))


def meet_shapes(left: Shape, right: Shape) -> Shape:
    return tuple(map(meet_axes, left, right))


def find_repeated(shape: Shape) -> Axis | None:
    """The first axis with a name that occurs twice."""
    names = [axis.name for axis in shape if axis.name]
    return next((axis for axis in shape if names.count(axis.name) > 1), None)


def align_axes(inner: Shape, outer: Shape) -> tuple[int, ...] | None:
    """Where the axes of a value stand among those of one of as many or more, or None where they do not fit.

    Of equal ranks each axis stands in its place. In a larger value one with a name stands where that name does, any
    other next to the axis that follows it, from the last.
    """
    names = [axis.name for axis in outer] if len(inner) < len(outer) else []
    positions: list[int] = []
    free = len(outer)  # the positions before this are free
    for axis in reversed(inner):
        at = names.index(axis.name) if axis.name and axis.name in names else free - 1
        if not 0 <= at < free or not (may_meet(axis, outer[at]) or ONE in (axis, outer[at])):
            return None
        positions.insert(0, at)
        free = at
    return tuple(positions)


def broadcast(left: Axis, right: Axis) -> Axis:
    """What two axes become in arithmetic: a plain one of a single place is repeated."""
    if left == ONE:
        return right
    return left if right == ONE else meet_axes(left, right)


@dataclass(frozen=True)
class TensorType:
    """`float[N, D]`, `token[time, vocabulary]`, `class[n]`, `length[time]`.

    `size` is the vocabulary of a token or the number of classes. `of` is the name of the axis along which a `length`
    tells how long each example is, or of that of a label's classes, if it has one: `class[kind=10]`. `per` says
    whether each example has a value of its own or the batch has one (a balance statistic over a batch).
    """

    dtype: DType
    shape: Shape = ()
    size: int | None = None
    per: Literal["example", "batch"] = "example"
    of: str = ""

    def __str__(self) -> str:
        rest = [str(Axis(self.size, self.of))] if self.size is not None or self.of else []
        inside = [*map(str, self.shape), *rest]
        axes = f"[{', '.join(inside)}]" if inside else ""
        return f"{self.dtype}{axes}{' over batch' if self.per == 'batch' else ''}"

    @property
    def padded(self) -> tuple[str, ...]:
        """The names of its axes of any length."""
        return tuple(axis.name for axis in self.shape if axis.is_padded)

    @property
    def classes(self) -> Axis | None:
        """The axis of the values that a label takes, of a label."""
        return Axis(self.size, self.of) if self.dtype == "class" else None

    @property
    def dimensions(self) -> tuple[int | str, ...]:
        """How long its axes are, and the names of those of any length."""
        return tuple(axis.name if axis.size is None else axis.size for axis in self.shape)

    def with_shape(self, shape: Sequence[Axis | int]) -> TensorType:
        return TensorType(self.dtype, shape_of(shape), self.size, self.per, self.of)

    def position(self, name: str) -> int | None:
        """Where an axis of a name stands, from 0, or None."""
        return next((at for at, axis in enumerate(self.shape) if axis.name == name), None)

    def meets(self, other: TensorType) -> bool:
        """Whether a value of one type may stand where one of the other is meant."""
        if self.classes is not None and other.classes is not None and may_meet(self.classes, other.classes):
            other = replace(other, of=self.of)
        return replace(self, shape=()) == replace(other, shape=()) and shapes_meet(self.shape, other.shape)

    def as_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"dtype": self.dtype, "shape": [axis.as_json() for axis in self.shape]}
        if self.size is not None:
            record["size"] = self.size
        if self.per != "example":
            record["per"] = self.per
        if self.of:
            record["of"] = self.of
        return record


def floats(*axes: Axis | int) -> TensorType:
    return TensorType("float", shape_of(axes))
