"""Places of nodes, and what moves say of names that are no nodes'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from modgraph.inspect.diff.facts import Names, regions_of
from modgraph.inspect.diff.values import Entry, Moved

WEIGHTS, AXIS = "weights", "axis"  # kinds of moves that are of no node


def name_in(place: str) -> str:
    """The name of a node in its graph."""
    return place.rpartition("/")[2]


def level_of(place: str) -> str:
    """What the places of all nodes in its graph begin with."""
    return place[: -len(name_in(place))]


def scopes_of(nodes: Iterable[Entry]) -> dict[str, str]:
    """What owners of weights begin with in each level of a graph."""
    return {"": "", **dict(_scopes(nodes, "", ""))}


def _scopes(nodes: Iterable[Entry], level: str, scope: str) -> Iterator[tuple[str, str]]:
    """The levels below one, and what owners of weights there begin with."""
    for entry in nodes:
        for at, region in enumerate(regions_of(entry)):
            below = f"{level}{entry['name']}/{at}/"
            inside = scope if entry["kind"] == "scan" else below
            yield below, inside
            yield from _scopes(region["nodes"], below, inside)


def owners_after(moves: Iterable[Moved], scopes: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The new names of owners of weights by scope: those of nodes where nothing else is said.

    Names in a module of a pool are its own, all others the whole model's: `scopes` says it of each level.
    """
    found: dict[str, dict[str, str]] = {scope: {} for scope in scopes.values()}
    for each in sorted(moves, key=lambda move: move.kind == WEIGHTS):
        if each.kind != AXIS:
            found[scopes[level_of(each.before)]][name_in(each.before)] = name_in(each.after)
    return found


def axes_after(moves: Iterable[Moved]) -> Names:
    """The new names of axes: those of pools are theirs."""
    kinds = ("pool", AXIS)
    return {name_in(each.before): name_in(each.after) for each in moves if each.kind in kinds}


def lies_below(name: str, above: frozenset[str]) -> bool:
    """Whether a name begins with one of others and a dot."""
    return any(name[:at] in above for at, sign in enumerate(name) if sign == ".")
