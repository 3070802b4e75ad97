"""Compares two graphs: nodes are matched, the regions of those that match are compared likewise, then fact by fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modgraph.inspect.diff.colours import Palette
from modgraph.inspect.diff.facts import Facts, Names, Renames, declared, facts_of, owner_of, regions_of
from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.matching import Matching, matched
from modgraph.inspect.diff.places import AXIS, WEIGHTS, axes_after, owners_after
from modgraph.inspect.diff.values import Added, Attribute, Changed, Diff, Doubt, Entry, Moved, Removed
from modgraph.inspect.diff.votes import axes_of, elected
from modgraph.inspect.natural import natural
from modgraph.ir import Graph, flat_to_json


@dataclass(frozen=True)
class Compared:
    """Two levels whose nodes have been matched. `before` and `after` are what places of their nodes begin with; `scope`
    what owners of weights do: names in a module of a pool are its own, all others the whole model's."""

    before: str
    after: str
    scope: str
    levels: tuple[Level, Level]
    matching: Matching

    @property
    def names(self) -> Names:
        return self.matching.pairs

    def pairs(self) -> Iterator[tuple[Entry, Entry]]:
        for old, new in self.names.items():
            yield self.levels[0].entries[old], self.levels[1].entries[new]


def compare(before: Graph, after: Graph, moved: Mapping[str, str] | None = None) -> Diff:
    """What leads from one graph to another; `moved` says what names (or what they lie below) have become."""
    records = flat_to_json(before), flat_to_json(after)
    levels = (Level.of(records[0]["nodes"]), Level.of(records[1]["nodes"]))
    compared = [*_compared(levels, "", "", "", Palette(), moved or {})]
    left = [(each, *each.matching.left()) for each in compared]
    moves = _moves(compared)
    return Diff(
        added=_sorted(Added(each.after + name, each.levels[1].entries[name]) for each, _, new in left for name in new),
        removed=_sorted(
            Removed(each.before + name, each.levels[0].entries[name]) for each, old, _ in left for name in old
        ),
        moved=tuple(moves),
        changed=tuple(sorted(_all_changes(compared, moves), key=lambda each: natural(each.after))),
        doubts=tuple(_doubts(compared)),
        model=tuple(_model(*records)),
    )


def _moves(compared: list[Compared]) -> list[Moved]:
    scopes = {each.before: each.scope for each in compared}
    moves = _moved_nodes(compared)
    return [*moves, *_moved_owners(compared, moves, scopes), *_moved_axes(compared)]


def _all_changes(compared: list[Compared], moves: list[Moved]) -> Iterator[Changed]:
    scopes = {each.before: each.scope for each in compared}
    owners, axes = owners_after(moves, scopes), axes_after(moves)
    inner = {each.before: each.names for each in compared}
    for each in compared:
        yield from _changes(each, owners[each.scope], axes, inner)


def _sorted(found: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(found, key=lambda each: natural(each.place)))


def _compared(
    levels: tuple[Level, Level], before: str, after: str, scope: str, palette: Palette, moved: Mapping[str, str]
) -> Iterator[Compared]:
    """Two levels, and those in the nodes that match."""
    found = Compared(before, after, scope, levels, matched(*levels, palette, moved))
    yield found
    for old, new in found.pairs():
        for at, regions in enumerate(zip(regions_of(old), regions_of(new), strict=False)):
            inside = (Level.of_region(regions[0]), Level.of_region(regions[1]))
            places = f"{before}{old['name']}/{at}/", f"{after}{new['name']}/{at}/"
            in_scan = old["kind"] == "scan"
            yield from _compared(inside, *places, scope if in_scan else places[0], palette, moved if in_scan else {})


# ------------------------------------------------------------ names


def _moved_nodes(compared: list[Compared]) -> list[Moved]:
    found = [
        Moved(str(old["kind"]), each.before + old["name"], each.after + new["name"])
        for each in compared
        for old, new in each.pairs()
        if old["name"] != new["name"]
    ]
    return sorted(found, key=lambda each: natural(each.after))


def _moved_owners(compared: list[Compared], moves: list[Moved], scopes: Names) -> Iterator[Moved]:
    """Weights under another name, where it is not the new name of their node."""
    usual = owners_after(moves, scopes)
    for scope, names in usual.items():
        votes = [*_owner_votes(compared, scope)]
        after = elected(votes)
        for old in sorted({old for old, _ in votes}, key=natural):
            new = after.get(old, old)
            if names.get(old, old) != new:
                yield Moved(WEIGHTS, scope + old, scope + new)


def _owner_votes(compared: list[Compared], scope: str) -> Iterator[tuple[str, str]]:
    for each in compared:
        if each.scope == scope:
            yield from ((owner_of(old), owner_of(new)) for old, new in each.pairs() if old["kind"] == "op")


def _moved_axes(compared: list[Compared]) -> Iterator[Moved]:
    """Axes under another name that are no pool's."""
    pools = {name for each in compared for level in each.levels for name in level.pools}
    votes = elected(vote for each in compared for old, new in each.pairs() for vote in axes_of(old, new))
    for old, new in sorted(votes.items()):
        if old != new and not pools & {old, new}:
            yield Moved(AXIS, old, new)


# ------------------------------------------------------------ facts


def _changes(each: Compared, owners: Names, axes: Names, inner: Mapping[str, Names]) -> Iterator[Changed]:
    for old, new in each.pairs():
        place = each.before + old["name"]
        shared = min(len(regions_of(old)), len(regions_of(new)))
        below = {at: inner[f"{place}/{at}/"] for at in range(shared)}
        facts = Renames(each.names, owners, axes, below).of(facts_of(old, shared))
        attributes = tuple(_attributes(facts, facts_of(new, shared)))
        if attributes:
            yield Changed(str(new["kind"]), place, each.after + new["name"], attributes)


def _attributes(before: Facts, after: Facts) -> Iterator[Attribute]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old != new or type(old) is not type(new):  # 0 equals 0.0 and false
            yield Attribute(name, old, new)


def _model(old: Entry, new: Entry) -> Iterator[Attribute]:
    """What is no part of a graph's identity."""
    given = [{f"parameters.{name}": value for name, value in each["parameters"].items()} for each in (old, new)]
    yield from _attributes(
        {"name": old["name"], **given[0], "inputs": old["inputs"]},
        {"name": new["name"], **given[1], "inputs": new["inputs"]},
    )


def _doubts(compared: list[Compared]) -> Iterator[Doubt]:
    for each in compared:
        if not each.scope:
            yield from each.matching.doubts(_is_worth_moving)


def _is_worth_moving(level: Level, name: str) -> bool:
    """Whether a node has weights, or a name that others know."""
    entry = level.entries[name]
    declaration = declared(entry)
    return (
        bool(declaration.weights) if declaration is not None else entry["kind"] in ("pool", "input", "target", "output")
    )
