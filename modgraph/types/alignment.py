"""How the axes of values meet in arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from modgraph.types.axis import ONE, Axis, Shape, find_repeated, may_meet, meet_axes


def align_axes(inner: Shape, outer: Shape) -> tuple[int, ...] | None:
    """Find the positions of the axes of `inner` among those of `outer`; None if they cannot be broadcast.

    With equal ranks the axes match one by one. In a larger shape a named axis matches the axis of that name, and a
    plain one takes the place before the axis that follows it.
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


@dataclass(frozen=True)
class Joined:
    """The axes of two values in arithmetic, and the positions among them of the axes of each."""

    shape: Shape
    left: tuple[int, ...]
    right: tuple[int, ...]


def join_axes(left: Shape, right: Shape) -> Joined | None:
    """Join the axes of two values by name, in any order; None if they do not fit together.

    The result has the axes of the value with more of them, the left one if both have as many. Axes that it lacks are
    inserted before its last plain axes. Plain axes align from the last.
    """
    if find_repeated(left) or find_repeated(right):
        return None
    if len(left) < len(right):
        found = join_axes(right, left)
        return found and Joined(found.shape, found.right, found.left)
    by_name = {axis.name: at for at, axis in enumerate(left) if axis.name}
    met = {at: by_name[axis.name] for at, axis in enumerate(right) if axis.name in by_name}
    met |= dict(zip(reversed(_find_plain(right)), reversed(_find_plain(left)), strict=False))
    own, lacking = (
        [at for at in range(len(shape)) if at not in known]
        for shape, known in ((left, {*met.values()}), (right, met.keys()))
    )
    pairs = [(left[at], right[other]) for other, at in met.items()]
    fits = all(may_meet(*pair) or ONE in pair for pair in pairs) and by_name and any(axis.name for axis in right)
    if not fits or not _are_joinable([left[at] for at in own], [right[at] for at in lacking], bool(met)):
        return None
    lacking.sort(key=lambda at: not right[at].name)  # plain axes stay next to plain ones
    end = len(left) - len([*takewhile(lambda axis: not axis.name, reversed(left))])
    shape, places = list(left), {at: end + place for place, at in enumerate(lacking)}
    for other, at in met.items():
        shape[at] = broadcast(left[at], right[other])
        places[other] = at + len(lacking) * (at >= end)
    whole = (*shape[:end], *(right[at] for at in lacking), *shape[end:])
    kept = tuple(at + len(lacking) * (at >= end) for at in range(len(left)))
    return Joined(whole, kept, tuple(places[at] for at in range(len(right))))


def _find_plain(shape: Shape) -> list[int]:
    return [at for at, axis in enumerate(shape) if not axis.name]


def _are_joinable(left: Sequence[Axis], right: Sequence[Axis], share: bool) -> bool:
    """Whether two values fit together that have further axes each, and `share` some or not.

    Values that share an axis may be meant to share all, unless the further ones of one of them are second readings.
    """
    if any(may_meet(one, other) for one in left for other in right):  # a plain axis and one with a name
        return False
    sides = [[axis for axis in axes if axis.name] for axes in (left, right)]
    return not share or not all(sides) or any(all(axis.of for axis in side) for side in sides)


def place_axes(inner: Shape, outer: Shape) -> tuple[int, ...] | None:
    """Find the positions of the axes of an operand among those of the result of arithmetic, in any order; None if it
    cannot be broadcast to that."""
    found = align_axes(inner, outer)
    if found is not None and all(axis.name in ("", outer[at].name) for axis, at in zip(inner, found, strict=True)):
        return found
    joined = join_axes(outer, inner)
    return joined.right if joined is not None and joined.shape == outer else None


def broadcast(left: Axis, right: Axis) -> Axis:
    """Unify two axes in arithmetic, where a plain axis of size 1 is broadcast."""
    if left == ONE:
        return right
    return left if right == ONE else meet_axes(left, right)
