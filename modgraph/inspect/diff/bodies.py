"""What is told of the bodies of routers: nothing by itself, where the router's own line tells what it is now."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from modgraph.inspect.diff.places import AXIS, WEIGHTS, level_of, lies_below
from modgraph.inspect.diff.values import Changed, Diff, Moved
from modgraph.ir import DecisionNode, Graph


@dataclass(frozen=True)
class Bodies:
    """Of a graph the places of routes, and the names of routers, that a diff tells of by themselves."""

    routes: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, graph: Graph, told: set[str]) -> Bodies:
        """`told` are the places of routes, routers and pools that have lines of their own."""
        found = [places for places in _routes(graph) if told.intersection(places)]
        names = (_name(place) for route, router, _ in found for place in (route, router))
        return cls(frozenset(route for route, *_ in found), frozenset(names))

    def holds(self, place: str, kind: str = "") -> bool:
        """Whether a place, or a name of weights or of an axis, is in one of these bodies."""
        return lies_below(place, self.names if kind in (WEIGHTS, AXIS) else self.routes)


def without_bodies(diff: Diff, before: Graph, after: Graph) -> Diff:
    """A diff without what is in the bodies of routers that are told to be others, nor what only follows there from a
    change of the pool or from another name."""
    routers = [each for each in diff.changed if each.kind == "router"]
    old = Bodies.of(before, {each.before for each in routers} | {each.place for each in diff.removed})
    new = Bodies.of(after, {each.after for each in routers} | {each.place for each in diff.added})
    beside: list[Changed | Moved] = [*(each for each in diff.changed if each.kind == "pool"), *diff.moved]
    around = Bodies.of(before, {each.before for each in beside}), Bodies.of(after, {each.after for each in beside})
    every = Bodies.of(after, {place for places in _routes(after) for place in places})
    axes = _axes(before), _axes(after)

    def is_told(each: Changed) -> bool:
        follows = _follows(each) and around[1].holds(each.after)
        decides = each.kind == "decision" and each.after in new.routes
        inside = decides or new.holds(each.after)
        return not (inside or follows or (_renames(each, *axes) and every.holds(each.after)) or _reads(each, old, new))

    def is_move(each: Moved) -> bool:
        return not all(
            one.holds(place, each.kind) or other.holds(place, each.kind)
            for one, other, place in ((old, around[0], each.before), (new, around[1], each.after))
        )

    return replace(
        diff,
        added=tuple(each for each in diff.added if not new.holds(each.place)),
        removed=tuple(each for each in diff.removed if not old.holds(each.place)),
        changed=tuple(filter(is_told, diff.changed)),
        moved=tuple(filter(is_move, diff.moved)),
        doubts=tuple(each for each in diff.doubts if not (old.holds(each.before) or new.holds(each.after))),
    )


def _follows(change: Changed) -> bool:
    """Whether only types are others, or how long an array is."""
    return all(each.name.startswith("types.") or each.name == "settings.sizes" for each in change.attributes)


def _reads(change: Changed, old: Bodies, new: Bodies) -> bool:
    """Whether what is read is another value of the same body alone."""
    before, after = level_of(change.before), level_of(change.after)
    return all(
        each.name.startswith("inputs.")
        and each.before is not None
        and each.after is not None
        and old.holds(before + each.before[0])
        and new.holds(after + each.after[0])
        for each in change.attributes
    )


def _renames(change: Changed, before: Set[str], after: Set[str]) -> bool:
    """Whether only types are others, and which of a graph's axes is meant."""
    settings = [each for each in change.attributes if not each.name.startswith("types.")]
    return all(each.name == "settings.axis" and each.before in before and each.after in after for each in settings)


def _axes(graph: Graph) -> frozenset[str]:
    """What the axes of pools are called."""
    return frozenset(pool.axis.name for pool in graph.pools().values())


def _routes(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """The places of routes by routers that are written in the language, each with those of its router and its pool."""
    for each in graph.decisions():
        level = "" if each.part.scan is None else f"{each.part.scan.name}/0/"
        if isinstance(each.node, DecisionNode):
            yield level + each.name, level + each.router.name, level + each.pool.name


def _name(place: str) -> str:
    return place.rpartition("/")[2]
