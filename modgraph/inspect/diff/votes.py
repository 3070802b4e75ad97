"""What names that are no nodes' have become: owners of weights and axes, by the nodes that speak of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from modgraph.inspect.diff.facts import Names
from modgraph.inspect.diff.values import Entry

Pair = tuple[str, str]


def elected(votes: Iterable[Pair]) -> Names:
    """The new names of those that always stand in the place of one name, which always stands in theirs."""
    after: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    for old, new in votes:
        after.setdefault(old, set()).add(new)
        before.setdefault(new, set()).add(old)
    return {old: new for old, names in after.items() if len(names) == 1 for new in names if len(before[new]) == 1}


def axes_of(before: Entry, after: Entry) -> Iterator[Pair]:
    """The names of axes in the types of a node, before and after."""
    for old, new in zip(before["types"], after["types"], strict=False):
        if len(old["shape"]) == len(new["shape"]):
            names = [(_name(axis), _name(other)) for axis, other in zip(old["shape"], new["shape"], strict=True)]
            yield from ((name, other) for name, other in names if name and other)
        if "of" in old and "of" in new:
            yield old["of"], new["of"]


def _name(axis: Any) -> str:
    return axis["name"] if isinstance(axis, dict) else axis if isinstance(axis, str) else ""
