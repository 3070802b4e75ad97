"""Compares two graphs: nodes are matched, the regions of those that match are compared likewise, then fact by fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from modgraph.inspect.diff.colours import Palette
from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.matching import Matching
from modgraph.inspect.diff.renames import AXIS, LABEL, WEIGHTS, Names, Renames
from modgraph.inspect.diff.values import (
    Added,
    Changed,
    Diff,
    Moved,
    Removed,
    differences,
    facts_of,
    model_of,
    regions_of,
)
from modgraph.inspect.natural import natural
from modgraph.ir import DecisionNode, Graph, Node, OpNode, PoolNode, RouteNode, ScanNode

Pair = tuple[str, str]


@dataclass(frozen=True)
class Matched:
    """Two levels whose nodes have been matched."""

    before: Level
    after: Level
    matching: Matching

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        for old, new in self.matching.pairs.items():
            yield self.before.graph[old], self.after.graph[new]


def compare(before: Graph, after: Graph, moved: Mapping[str, str] | None = None) -> Diff:
    """What leads from one graph to another; `moved` says what names (or what they lie below) have become."""
    matched = [*_match(Level(before), Level(after), Palette(), moved or {})]
    left = [(each, *each.matching.left()) for each in matched]
    added = (Added(each.after.place + name, each.after.graph) for each, _, new in left for name in new)
    removed = [Removed(each.before.place + name, each.before.graph) for each, old, _ in left for name in old]
    moves = [*_moved_nodes(matched)]
    moves += [*_moved_owners(matched, Renames.of(moves, before)), *_moved_axes(matched), *_moved_labels(matched)]
    taken = {each.before.place + name for each in matched for name in each.matching.back}
    gone = [(each.kind, each.place) for each in removed if each.place in taken]
    renamed = Level(Renames.of(moves, before, gone).graph(Level(before)))
    homes = {level.place: level.graph for level in renamed.walk()}
    changed = (change for each in matched for change in _changes(each, homes[each.after.place]))
    return Diff(
        added=tuple(sorted(added, key=lambda each: natural(each.place))),
        removed=tuple(sorted(removed, key=lambda each: natural(each.place))),
        moved=tuple(moves),
        changed=tuple(sorted(changed, key=lambda each: natural(each.after))),
        doubts=tuple(doubt for each in matched if not each.before.scope for doubt in each.matching.doubts()),
        model=differences(model_of(before), model_of(after)),
    )


def _match(before: Level, after: Level, palette: Palette, moved: Mapping[str, str]) -> Iterator[Matched]:
    """Two levels, and those in the nodes that match."""
    found = Matched(before, after, Matching(before, after, palette, moved))
    yield found
    for old, new in found.pairs():
        for regions in zip(before.inner(old), after.inner(new), strict=False):
            yield from _match(*regions, palette, moved if isinstance(old, ScanNode) else {})


def _changes(each: Matched, renamed: Graph) -> Iterator[Changed]:
    """What differs of the nodes of a level; `renamed` is that before, in names after."""
    for old, new in each.pairs():
        shared = min(len(regions_of(old)), len(regions_of(new)))
        facts = facts_of(renamed, new.name, shared), facts_of(each.after.graph, new.name, shared)
        if attributes := differences(*facts):
            places = each.before.place + old.name, each.after.place + new.name
            yield Changed(new.kind, *places, attributes, each.after.graph)


# ------------------------------------------------------------ names


def _moved_nodes(matched: list[Matched]) -> list[Moved]:
    found = [
        Moved(old.kind, each.before.place + old.name, each.after.place + new.name)
        for each in matched
        for old, new in each.pairs()
        if old.name != new.name
    ]
    return sorted(found, key=lambda each: natural(each.after))


def _moved_owners(matched: list[Matched], usual: Renames) -> Iterator[Moved]:
    """Weights under another name, where it is not the new name of their node."""
    scopes = dict.fromkeys(each.before.scope for each in matched)
    for scope in scopes:
        votes = [
            (old.owner, new.owner)
            for each in matched
            if each.before.scope == scope
            for old, new in each.pairs()
            if isinstance(old, OpNode) and isinstance(new, OpNode)
        ]
        after = _elect(votes)
        for old in sorted({old for old, _ in votes}, key=natural):
            new = after.get(old, old)
            if usual.owner(scope, old) != new:
                yield Moved(WEIGHTS, scope + old, scope + new)


def _moved_axes(matched: list[Matched]) -> Iterator[Moved]:
    """Axes under another name that are no pool's."""
    levels = [level for each in matched for level in (each.before, each.after)]
    pools = {pool.name for level in levels for pool in level.graph.of_kind(PoolNode)}
    votes = _elect(vote for each in matched for old, new in each.pairs() for vote in _axes(old, new))
    for old, new in sorted(votes.items()):
        if old != new and not pools & {old, new}:
            yield Moved(AXIS, old, new)


def _moved_labels(matched: list[Matched]) -> Iterator[Moved]:
    """Other names by which users know decisions."""
    pairs = (pair for each in matched for pair in each.pairs() if isinstance(pair[0], RouteNode | DecisionNode))
    votes = _elect((getattr(old, "label", ""), getattr(new, "label", "")) for old, new in pairs)
    yield from (Moved(LABEL, old, new) for old, new in votes.items() if old and new and old != new)


def _elect(votes: Iterable[Pair]) -> Names:
    """The new names of those that always stand in the place of one name, which always stands in theirs."""
    after: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    for old, new in votes:
        after.setdefault(old, set()).add(new)
        before.setdefault(new, set()).add(old)
    return {old: new for old, names in after.items() if len(names) == 1 for new in names if len(before[new]) == 1}


def _axes(before: Node, after: Node) -> Iterator[Pair]:
    """The names of axes in the types of a node, before and after."""
    for old, new in zip(before.types, after.types, strict=False):
        if len(old.shape) == len(new.shape):
            names = ((axis.name, other.name) for axis, other in zip(old.shape, new.shape, strict=True))
            yield from ((name, other) for name, other in names if name and other)
        if old.of and new.of:
            yield old.of, new.of
