"""The lattice of causality: which places of an axis of an input an entry of a value may depend on.

A `Reach` is a union of ranges: Σ factor · index + [low, high], by the indices of the entry and their factors. An index
is an axis of the value, counted from the last, or a name: the step of a scan, the token whose message a module gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from modgraph.declare.indexing import Inner, Limit, Number, Place

Index = int | str
Terms = frozenset[tuple[Index, Number]]


class Interval(NamedTuple):
    """Offsets from `low` to `high`; None is no bound."""

    low: Limit = 0
    high: Limit = 0

    def join(self, other: Interval) -> Interval:
        """The smallest interval that contains both."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        return Interval(low, None if self.high is None or other.high is None else max(self.high, other.high))

    def meet(self, other: Interval) -> Interval:
        """The offsets in both."""
        lows = [each for each in (self.low, other.low) if each is not None]
        highs = [each for each in (self.high, other.high) if each is not None]
        return Interval(max(lows, default=None), min(highs, default=None))

    def add(self, other: Interval, factor: Number = 1) -> Interval:
        """The sums of an offset and `factor` times one of the other."""
        low, high = (other.low, other.high) if factor > 0 else (other.high, other.low)
        return Interval(_add(self.low, low, factor), _add(self.high, high, factor))


Reach = Mapping[Terms, Interval]
Limits = Mapping[Inner, Place]
EVERYTHING: Reach = {frozenset(): Interval(None, None)}


def _add(left: Limit, right: Limit, factor: Number) -> Limit:
    return None if left is None or right is None else left + factor * right


def join(reaches: Iterable[Reach]) -> Reach:
    """The union of some reaches."""
    found: dict[Terms, Interval] = {}
    for reach in reaches:
        for terms, interval in reach.items():
            known = found.get(terms)
            found[terms] = interval if known is None else known.join(interval)
    return found


def widen(before: Reach, after: Reach) -> Reach:
    """Drop the bounds that moved from one round of a fixed point to the next."""
    found = dict(after)
    for terms, (low, high) in after.items():
        known = before.get(terms)
        if known is not None:
            found[terms] = Interval(low if low == known.low else None, high if high == known.high else None)
    return found


def rename(reach: Reach, to: Callable[[Index], Index]) -> Reach:
    """Give indices other names."""
    return join({frozenset((to(index), factor) for index, factor in terms): each} for terms, each in reach.items())


def follow(reach: Reach, places: Sequence[Place], limits: Limits) -> Reach:
    """The reach of a result that reads an operand with a reach at some places, inner indices within limits."""
    return join(_follow(terms, interval, places, limits) for terms, interval in reach.items())


def _follow(terms: Terms, interval: Interval, places: Sequence[Place], limits: Limits) -> Reach:
    factors: dict[Index | Inner, Number] = {}
    for index, factor in terms:
        if isinstance(index, str):
            factors[index] = factors.get(index, 0) + factor
            continue
        place = places[index]
        interval = interval.add(Interval(place.low, place.high), factor)
        for each, times in place.terms:
            factors[each] = factors.get(each, 0) + factor * times
    for inner in [each for each in factors if isinstance(each, Inner)]:
        factor = factors.pop(inner)
        if factor:
            within = limits.get(inner) or Place((), 0, None if inner.size is None else inner.size - 1)
            interval = interval.add(Interval(within.low, within.high), factor)
            for each, times in within.terms:
                factors[each] = factors.get(each, 0) + factor * times
    kept = ((each, factor) for each, factor in factors.items() if factor and not isinstance(each, Inner))
    return {frozenset(kept): interval}


def sum_before(reach: Reach, step: str) -> Reach:
    """The union over all earlier steps of a scan, relative to a step."""
    found = []
    for terms, (low, high) in reach.items():
        factor = dict(terms).get(step, 0)
        if factor > 0:
            high, low = (None if high is None else high - factor), None
        elif factor < 0:
            low, high = (None if low is None else low - factor), None
        found.append({terms: Interval(low, high)})
    return join(found)
