"""Compares two graphs: nodes are matched, the regions of those that match are compared likewise, then fact by fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from modgraph.inspect.cost import natural
from modgraph.inspect.diff.changes import Changed, Diff, Moved, Unmatched, differences, facts_of, model_of
from modgraph.inspect.diff.level import Level, Palette, regions_of
from modgraph.inspect.diff.matching import Matching
from modgraph.inspect.diff.renames import AXIS, LABEL, WEIGHTS, Renames
from modgraph.ir import DecisionNode, Graph, Node, OpNode, PoolNode, RouteNode, ScanNode

Pair = tuple[str, str]


def compare(before: Graph, after: Graph, moved: Mapping[str, str] | None = None) -> Diff:
    """What leads from one graph to another; `moved` says what names (or what they lie below) have become."""
    palette: Palette = {}
    matched = [*_match(Level(before, palette=palette), Level(after, palette=palette), moved or {})]
    added, removed = list[Unmatched](), list[Unmatched]()
    for each in matched:
        for found, level, names in zip((removed, added), each.levels, each.left(), strict=True):
            found += (Unmatched(level.place + name, level.graph) for name in names)
    moves = [*_moves(matched, before)]
    taken = {each.levels[0].place + name for each in matched for name in each.before}
    gone = [(each.kind, each.place) for each in removed if each.place in taken]
    renamed = Level(Renames(moves, before, gone).graph(Level(before)))
    homes = {level.place: level.graph for level in renamed.walk()}
    changed = (change for each in matched for change in _changes(each, homes[each.levels[1].place]))
    return Diff(
        added=tuple(sorted(added, key=lambda each: natural(each.place))),
        removed=tuple(sorted(removed, key=lambda each: natural(each.place))),
        moved=tuple(moves),
        changed=tuple(sorted(changed, key=lambda each: natural(each.after))),
        doubts=tuple(doubt for each in matched if not each.levels[0].scope for doubt in each.doubts()),
        model=differences(model_of(before), model_of(after)),
    )


def _match(before: Level, after: Level, moved: Mapping[str, str]) -> Iterator[Matching]:
    """Two levels, and those in the nodes that match."""
    found = Matching(before, after, moved)
    yield found
    for old, new in found.nodes():
        for inner, other in zip(before.inner(old), after.inner(new), strict=False):
            yield from _match(inner, other, moved if isinstance(old, ScanNode) else {})


def _changes(each: Matching, renamed: Graph) -> Iterator[Changed]:
    """What differs of the nodes of a level; `renamed` is that before, in names after."""
    for old, new in each.nodes():
        shared = min(len(regions_of(old)), len(regions_of(new)))
        before, after = each.levels
        if attributes := differences(facts_of(renamed, new.name, shared), facts_of(after.graph, new.name, shared)):
            yield Changed(new.kind, before.place + old.name, after.place + new.name, attributes, after.graph)


def _moves(matched: list[Matching], before: Graph) -> Iterator[Moved]:
    """The names that are others: of nodes, of weights where it is not the new name of their node, of axes that are no
    pool's, and those by which users know decisions."""
    pairs = [(each, old, new) for each in matched for old, new in each.nodes()]
    nodes = [
        Moved(old.kind, each.levels[0].place + old.name, each.levels[1].place + new.name)
        for each, old, new in pairs
        if old.name != new.name
    ]
    yield from sorted(nodes, key=lambda each: natural(each.after))
    usual = Renames(nodes, before)
    for scope in dict.fromkeys(each.levels[0].scope for each in matched):
        owners = [
            (old.owner, new.owner)
            for each, old, new in pairs
            if each.levels[0].scope == scope and isinstance(old, OpNode) and isinstance(new, OpNode)
        ]
        elected, named = _elect(owners), usual.naming(WEIGHTS, scope)
        for name in sorted({name for name, _ in owners}, key=natural):
            if named(name) != (other := elected.get(name, name)):
                yield Moved(WEIGHTS, scope + name, scope + other)
    pools = {pool.name for each in matched for level in each.levels for pool in level.graph.of_kind(PoolNode)}
    for name, other in sorted(_elect(vote for _, old, new in pairs for vote in _axes(old, new)).items()):
        if name != other and not pools & {name, other}:
            yield Moved(AXIS, name, other)
    uses = [(old, new) for _, old, new in pairs if isinstance(old, RouteNode | DecisionNode)]
    labels = _elect((old.label, getattr(new, "label", "")) for old, new in uses)
    yield from (Moved(LABEL, name, other) for name, other in labels.items() if name and other and name != other)


def _elect(votes: Iterable[Pair]) -> dict[str, str]:
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
