"""What people read of a diff: of a router its settings, and not what follows in its body."""

from __future__ import annotations

from dataclasses import replace

from modgraph.inspect.diff.changes import Changed, Diff, Moved
from modgraph.inspect.diff.compare import AXIS, LABEL, WEIGHTS
from modgraph.inspect.diff.level import Level, calls_around, is_below, split_place
from modgraph.ir import Call, DecisionNode, Graph, Result

FOLLOWING = ("types.", "settings.sizes", "settings.axis")  # what follows in the body of a router


def without_bodies(diff: Diff, before: Graph, after: Graph) -> Diff:
    """A diff without what is in the bodies of routers that are said to be others, nor what only follows there."""
    routers = [each for each in diff.changed if each.kind == "router"]
    old = _Bodies(before, {each.before for each in routers} | {each.place for each in diff.removed})
    new = _Bodies(after, {each.after for each in routers} | {each.place for each in diff.added})
    moved = _Bodies(before, {each.before for each in diff.moved}), _Bodies(after, {each.after for each in diff.moved})
    every = _Bodies(after, None)
    uses_moved = any(each.kind in ("route", "decision") for each in diff.moved)

    def is_change(each: Changed) -> bool:
        if each.after in new.inside or each.after in new.decisions:
            return False
        if each.after in every.inside and all(name.startswith(FOLLOWING) for name in each.names):
            return False
        read = [
            isinstance(value, Result) and split_place(place)[0] + value.node in inside
            for one in each.attributes
            for place, value, inside in ((each.before, one.before, old.inside), (each.after, one.after, new.inside))
        ]
        return not all(read)  # another value of the same body

    def is_move(each: Moved) -> bool:
        if each.kind == LABEL:
            return not uses_moved
        return not all(
            one.hold(place, each.kind) or other.hold(place, each.kind)
            for one, other, place in ((old, moved[0], each.before), (new, moved[1], each.after))
        )

    return replace(
        diff,
        added=tuple(each for each in diff.added if each.place not in new.inside),
        removed=tuple(each for each in diff.removed if each.place not in old.inside),
        changed=tuple(filter(is_change, diff.changed)),
        moved=tuple(filter(is_move, diff.moved)),
        doubts=tuple(each for each in diff.doubts if not (each.before in old.inside or each.after in new.inside)),
    )


class _Bodies:
    """The bodies of routers of a graph whose router, pool or decision stands at some places; of all, for None: the
    places of these `decisions`, and of the nodes `inside`."""

    def __init__(self, graph: Graph, places: set[str] | None) -> None:
        self.decisions: set[str] = set()
        self.inside: set[str] = set()
        self._names: set[str] = set()
        for level in Level(graph).walk():
            calls: set[Call] = set()
            for node in level.graph.of_kind(DecisionNode):
                names = {node.name, *level.graph.uses(node.name).values()}
                if places is None or not places.isdisjoint(level.place + name for name in names):
                    own = {call for call in calls_around(node) if call.path == node.name}
                    calls |= own
                    self.decisions |= {level.place + node.name} if own else set()
                    self._names |= {node.name, level.graph.router_of(node).name}
            if calls:
                self.inside |= {
                    level.place + node.name for node in level.graph if calls.intersection(calls_around(node))
                }
        self.inside -= self.decisions

    def hold(self, place: str, kind: str) -> bool:
        """Whether a place, or a name of weights or of an axis, is in one of these bodies."""
        if kind not in (WEIGHTS, AXIS):
            return place in self.inside
        return is_below(self._names, split_place(place)[1])
