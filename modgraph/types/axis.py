"""An axis of a value: what it is called, and how long it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


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


def shown(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def may_meet(left: Axis, right: Axis) -> bool:
    """Whether two axes are the same, or one is plain and as long as the other: it takes on the other's identity."""
    return left == right or (left.size == right.size and not (left.name and right.name))


def met(left: Axis, right: Axis) -> Axis:
    """What two axes that may meet become."""
    return left if left.name else right


def shapes_meet(left: Shape, right: Shape) -> bool:
    return len(left) == len(right) and all(map(may_meet, left, right))


def met_shapes(left: Shape, right: Shape) -> Shape:
    return tuple(map(met, left, right))


def repeated(shape: Shape) -> Axis | None:
    """The first axis with a name that occurs twice."""
    names = [axis.name for axis in shape if axis.name]
    return next((axis for axis in shape if names.count(axis.name) > 1), None)


def laid(inner: Shape, outer: Shape) -> tuple[int, ...] | None:
    """Where the axes of a value stand among those of one of as many or more, or None where they do not fit.

    Of equal ranks each axis stands in its place. In a larger value one with a name stands where that name does, any
    other next to the axis that follows it, from the last.
    """
    positions = range(len(outer)) if len(inner) == len(outer) else _positions_by_name(inner, outer)
    if positions is None or not all(_may_broadcast(axis, outer[at]) for axis, at in zip(inner, positions, strict=True)):
        return None
    return tuple(positions)


def _positions_by_name(inner: Shape, outer: Shape) -> list[int] | None:
    names = [axis.name for axis in outer]
    positions: list[int] = []
    free = len(outer)  # the positions before this are free
    for axis in reversed(inner):
        at = names.index(axis.name) if axis.name and axis.name in names else free - 1
        if not 0 <= at < free:
            return None
        positions.insert(0, at)
        free = at
    return positions


def _may_broadcast(left: Axis, right: Axis) -> bool:
    return may_meet(left, right) or ONE in (left, right)


def broadcast(left: Axis, right: Axis) -> Axis:
    """What two axes become in arithmetic: a plain one of a single place is repeated."""
    if left == ONE:
        return right
    return left if right == ONE else met(left, right)
