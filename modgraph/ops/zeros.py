"""Which results are zero because operands are: ops applied to choices, values of ones and zeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """At most `k` places along an axis are not zero, any number if `k` is None. `place` counts axes from the last.

    Without a place, zeros may be anywhere.
    """

    place: int | None = None
    k: int | None = None


@dataclass(frozen=True)
class Ranking:
    """A value with each of the ranks 0, 1, 2, … at most once along an axis; `place` counts axes from the last. `scores`
    is the op whose result is largest where ranks of the operand are lowest, if they rank it."""

    place: int
    scores: Any = None


@dataclass(frozen=True)
class ChosenRanks:
    """At most `count` of the ranks 0, 1, 2, …, the `lowest` ones or others."""

    count: int
    lowest: bool


Bounds = tuple[Bound | None, ...]  # of each operand; None for one without known zeros
ANYWHERE = Bound()


def move_bound(bound: Bound, to: Callable[[int], int | None]) -> Bound:
    """The bound after axes moved: `to` gives the new place of an axis, None where it has none."""
    place = None if bound.place is None else to(bound.place)
    return ANYWHERE if place is None else Bound(place, bound.k)


def drop_axis(position: int) -> Callable[[int], int]:
    """The new place of an axis once the one at a position is removed."""
    return lambda place: place if place > position else place + 1


def either_bound(bounds: Bounds) -> Bound:
    """The bound of a value whose numbers come from one of several values."""
    places = {None if bound is None else bound.place for bound in bounds}
    (place,) = places if len(places) == 1 else (None,)
    return ANYWHERE if place is None else Bound(place, _combined(bounds, max))


def union_bound(bounds: Bounds) -> Bound:
    """The bound of a value that is zero only where all of several values are."""
    either = either_bound(bounds)
    return either if either.place is None else Bound(either.place, _combined(bounds, sum))


def _combined(bounds: Bounds, how: Callable[[list[int]], int]) -> int | None:
    counts = [bound.k for bound in bounds if bound is not None and bound.k is not None]
    return how(counts) if len(counts) == len(bounds) else None
