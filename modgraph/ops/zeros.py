"""Propagation of known zeros: ops applied to choices, values of ones and zeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modgraph.declare import Signature
from modgraph.types import Axes


@dataclass(frozen=True)
class Bound:
    """At most `k` places along an axis are not zero; any number if `k` is None.

    `place` counts axes from the last; without it, zeros may be anywhere.
    """

    place: int | None = None
    k: int | None = None


@dataclass(frozen=True)
class Ranking:
    """A value with each of the ranks 0, 1, 2, … at most once along an axis; `place` counts axes from the last.

    If the ranks order the operand, `scores` is the op whose result is largest where they are lowest.
    """

    place: int
    scores: Any = None


@dataclass(frozen=True)
class ChoiceRanks:
    """At most `count` of the ranks 0, 1, 2, …; `lowest` says that they are the first."""

    count: int
    lowest: bool


Bounds = tuple[Bound | None, ...]  # of each operand; None for one without known zeros
Propagated = tuple[Any, Bound] | None  # an op for choices, and the bound of its result
ANYWHERE = Bound()


def move_bound(bound: Bound, to: Callable[[int], int]) -> Bound:
    """The bound after a permutation; `to` maps the old place of an axis to the new one."""
    return ANYWHERE if bound.place is None else Bound(to(bound.place), bound.k)


def either_bound(bounds: Bounds, together: Callable[[list[int]], int] = max) -> Bound:
    """The bound of a value whose numbers come from one of several values.

    With `together=sum`, the bound of a value that is zero only where all of them are.
    """
    places = {None if bound is None else bound.place for bound in bounds}
    (place,) = places if len(places) == 1 else (None,)
    counts = [bound.k for bound in bounds if bound is not None and bound.k is not None]
    k = together(counts) if len(counts) == len(bounds) else None
    return ANYWHERE if place is None else Bound(place, k)


# ---------------------------------------------------------------- rules of ops: by their signature and known bounds


def keep_bound(op: Any, signature: Signature, known: Bounds) -> Propagated:
    """The result is bound as the operand is."""
    return op, known[0] or ANYWHERE


def lose_bound(op: Any, signature: Signature, known: Bounds) -> Propagated:
    """The result is zero somewhere."""
    return op, ANYWHERE


def join_bounds(op: Any, signature: Signature, known: Bounds) -> Propagated:
    """Each number of the result is one of an operand."""
    return op, either_bound(known)


def moves(to: Callable[[Axes, int], int]) -> Callable[[Any, Signature, Bounds], Propagated]:
    """Axes of the first operand have other places in the result: `to` gives the new place of one."""

    def propagate(op: Any, signature: Signature, known: Bounds) -> Propagated:
        bound = known[0]
        return None if bound is None else (op, move_bound(bound, lambda place: to(signature.axes, place)))

    return propagate


def drop_axis(op: Any, signature: Signature, known: Bounds) -> Propagated:
    """The result lacks the axis at the position: it has no known zeros if these are counted along it."""
    bound, position = known[0], signature.axes["position"]
    if bound is None or bound.place == position:
        return None
    return op, move_bound(bound, lambda place: place if place > position else place + 1)
