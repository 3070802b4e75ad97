"""Where results are zero because operands are: what ops make of choices, values of ones and zeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """At most `k` places along an axis, by its place from the last, are not zero; any number if `k` is None.

    Without a place, zeros may stand anywhere.
    """

    place: int | None = None
    k: int | None = None


@dataclass(frozen=True)
class Ranking:
    """Along an axis, by its place from the last, the numbers 0, 1, 2, … stand once each at most. `scores` is the op
    that makes of the operand what is largest where they are lowest, if they follow it."""

    place: int
    scores: Any = None


@dataclass(frozen=True)
class AmongRanks:
    """Of the numbers 0, 1, 2, … so many at most, the lowest or others."""

    count: int
    lowest: bool


Bounds = tuple[Bound | None, ...]  # of each operand; None where it may be zero nowhere
ANYWHERE = Bound()


def moved(bound: Bound, to: Callable[[int], int | None]) -> Bound:
    """The bound of a value whose axes stand elsewhere: `to` gives the new place of an axis, None where it has none."""
    place = None if bound.place is None else to(bound.place)
    return ANYWHERE if place is None else Bound(place, bound.k)


def without(position: int) -> Callable[[int], int]:
    """Where axes stand once the one at a position is gone."""
    return lambda place: place if place > position else place + 1


def within_either(bounds: Bounds) -> Bound:
    """The bound of a value that is one of several."""
    places = {None if bound is None else bound.place for bound in bounds}
    (place,) = places if len(places) == 1 else (None,)
    return ANYWHERE if place is None else Bound(place, _combined(bounds, max))


def within_all(bounds: Bounds) -> Bound:
    """The bound of a value that is not zero where any of several is not."""
    either = within_either(bounds)
    return either if either.place is None else Bound(either.place, _combined(bounds, sum))


def _combined(bounds: Bounds, how: Callable[[list[int]], int]) -> int | None:
    counts = [bound.k for bound in bounds if bound is not None and bound.k is not None]
    return how(counts) if len(counts) == len(bounds) else None
