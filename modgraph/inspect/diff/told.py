"""What people are told of a diff: of a router its settings and not what follows in its body, of a call that is as
another one no nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from modgraph.inspect.diff.colours import Coloured, Palette
from modgraph.inspect.diff.definitions import Definitions
from modgraph.inspect.diff.keys import Item
from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.renames import AXIS, LABEL, WEIGHTS, level_of, name_in
from modgraph.inspect.diff.values import Alone, Changed, Diff, Moved
from modgraph.ir import Call, DecisionNode, Graph, Node, Result

FOLLOWING = ("types.", "settings.sizes", "settings.axis")  # what follows in the body of a router


def without_bodies(diff: Diff, before: Graph, after: Graph) -> Diff:
    """A diff without what is in the bodies of routers that are told to be others, nor what only follows there."""
    routers = [each for each in diff.changed if each.kind == "router"]
    old = _Bodies(before, {each.before for each in routers} | {each.place for each in diff.removed})
    new = _Bodies(after, {each.after for each in routers} | {each.place for each in diff.added})
    moved = _Bodies(before, {each.before for each in diff.moved}), _Bodies(after, {each.after for each in diff.moved})
    every = _Bodies(after, None)

    def is_told(each: Changed) -> bool:
        follows = all(name.startswith(FOLLOWING) for name in each.names) and every.hold(each.after)
        return not (follows or reads(each) or new.hold(each.after) or each.after in new.decisions)

    def reads(each: Changed) -> bool:
        """Whether what is read is another value of the same body alone."""
        sources = (
            (level_of(place) + result.node if isinstance(result, Result) else "", bodies)
            for one in each.attributes
            for place, result, bodies in ((each.before, one.before, old), (each.after, one.after, new))
        )
        return all(bodies.hold(place) for place, bodies in sources)

    uses_moved = any(each.kind in ("route", "decision") for each in diff.moved)

    def is_move(each: Moved) -> bool:
        if each.kind == LABEL:
            return not uses_moved
        return not all(
            one.hold(place, each.kind) or other.hold(place, each.kind)
            for one, other, place in ((old, moved[0], each.before), (new, moved[1], each.after))
        )

    return replace(
        diff,
        added=tuple(each for each in diff.added if not new.hold(each.place)),
        removed=tuple(each for each in diff.removed if not old.hold(each.place)),
        changed=tuple(filter(is_told, diff.changed)),
        moved=tuple(filter(is_move, diff.moved)),
        doubts=tuple(each for each in diff.doubts if not (old.hold(each.before) or new.hold(each.after))),
    )


class _Bodies:
    """The bodies of routers of a graph whose router, pool or decision stands at some places; of all, for None."""

    def __init__(self, graph: Graph, places: set[str] | None) -> None:
        self.decisions: set[str] = set()
        self.names: set[str] = set()
        self._held: set[str] = set()
        for level in Level(graph).walk():
            calls = dict(self._calls(level, places))
            self.decisions |= {level.place + name for name in calls.values()}
            for node in level.graph if calls else ():
                if level.place + node.name not in self.decisions and not calls.keys().isdisjoint(_chain(node)):
                    self._held.add(level.place + node.name)

    def _calls(self, level: Level, places: set[str] | None) -> Iterator[tuple[Call, str]]:
        for node in level.graph.of_kind(DecisionNode):
            names = [node.name, *level.graph.uses(node.name).values()]
            if places is None or any(level.place + name in places for name in names):
                self.names |= {node.name, level.graph.router_of(node).name}
                yield from ((call, node.name) for call in _chain(node) if call.path == node.name)

    def hold(self, place: str, kind: str = "") -> bool:
        """Whether a place, or a name of weights or of an axis, is in one of these bodies."""
        if kind not in (WEIGHTS, AXIS):
            return place in self._held
        name = name_in(place)
        return any(name[:at] in self.names for at, sign in enumerate(name) if sign == ".")


def _chain(node: Node) -> tuple[Call, ...]:
    return (*node.within.chain(),) if node.within else ()


# ------------------------------------------------------------ calls that are as others


def whole_calls(sign: str, alone: Sequence[Alone], graph: Graph, other: Graph) -> tuple[list[Item], list[Alone]]:
    """The calls of a graph whose nodes are all among those that it alone has, and whose definition the other graph has:
    a line for each, and the nodes that are in none."""
    places = {each.place for each in alone}
    if not places:
        return [], []
    palette = Palette()
    known = {
        (definition.kind, definition.lines): level.place + definition.calls[0].path
        for level in Level(other).walk()
        for definition in Definitions(Coloured(level, palette)).all
    }
    items, told = [], set[str]()
    for level in Level(graph).walk():
        if not any(level.place + node.name in places for node in level.graph):
            continue
        definitions = Definitions(Coloured(level, palette)).of
        missing = {call for node in level.graph if level.place + node.name not in places for call in _chain(node)}
        counts = Counter(_outermost(node, definitions.keys() - missing) for node in level.graph)
        for call, count in counts.items():
            definition = definitions[call] if call else None
            like = known.get((definition.kind, definition.lines)) if definition else None
            if call and like and count > 1:
                what = f"as {like} ({count} nodes)"
                items.append(Item(sign, call.kind, level.place + call.path, lambda say, what=what: (what, ())))  # type: ignore[misc]
                told |= {level.place + node.name for node in level.graph if call in _chain(node)}
    return items, [each for each in alone if each.place not in told]


def _outermost(node: Node, calls: set[Call]) -> Call | None:
    return next((call for call in reversed(_chain(node)) if call in calls), None)
