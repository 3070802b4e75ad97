"""Which modules the examples of each class, and of each group of the data, were sent to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modgraph.trace.entropies import shares_of
from modgraph.trace.routes import RouteTrace
from modgraph.trace.trace import Trace

CLASS = "class"


def groupings_of(trace: Trace) -> dict[str, Sequence[str]]:
    """A word for each example: its true class, and its group in each grouping of the data.

    Where there are several targets with a class for each example, its class of each, by the target's name.
    """
    several = len(trace.labels) > 1
    classes = {target if several else CLASS: words for target, words in trace.labels.items()}
    return {**classes, **{name: words.tolist() for name, words in trace.arrays.groups.items()}}


def use_by_groups(trace: Trace, route: RouteTrace) -> dict[str, dict[str, list[float]]]:
    """What each group of each grouping used of a route's modules."""
    orders = trace.arrays.orders
    return {name: use_by_group(route, words, orders.get(name)) for name, words in groupings_of(trace).items()}


def use_by_group(route: RouteTrace, words: Sequence[str], order: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Each module's share of what the tokens of each group selected, or of their gates, after the last round; groups in
    an order, or in that of their names."""
    totals_BM = route.chosen[-1].reshape(len(words), -1, route.modules).sum(1, dtype=np.float64)
    column, found = np.array(words), set(words)
    groups = sorted(found, key=_in_order) if order is None else [group for group in order if group in found]
    return {group: shares_of(totals_BM[column == group].sum(0)).tolist() for group in groups}


def _in_order(word: str) -> tuple[bool, int, str]:
    """Numbers by their size, before words."""
    number = word.isascii() and word.isdigit() and len(word) < 10
    return not number, int(word) if number else 0, word
