"""What names have become: those of nodes, of owners of weights, of axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.values import OUTPUT, Moved, with_regions
from modgraph.ir import (
    DecisionNode,
    Graph,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    Region,
    Result,
    RouteNode,
    ScanNode,
    rename,
)

Names = Mapping[str, str]

WEIGHTS, AXIS, LABEL = "weights", "axis", "label"  # kinds of moves that are of no node
GONE = "-"  # before the name of a node that is not there after


def name_in(place: str) -> str:
    """The name of a node in its graph."""
    return place.rpartition("/")[2]


def level_of(place: str) -> str:
    """What the places of all nodes in its graph begin with."""
    return place[: -len(name_in(place))]


@dataclass(frozen=True)
class Renames:
    """New names: of nodes by the level that they stand in, of owners of weights by scope, of axes, and the labels of
    decisions. A name that is not listed has stayed."""

    nodes: Mapping[str, Names]
    owners: Mapping[str, Names]
    axes: Names
    labels: Names

    @classmethod
    def of(cls, moves: Sequence[Moved], graph: Graph, gone: Iterable[tuple[str, str]] = ()) -> Renames:
        """The moves in a graph, and the kinds and places of nodes that are not there after. Owners of weights are
        called as their nodes where nothing else is said, axes as their pools."""
        scopes = {level.place: level.scope for level in Level(graph).walk()}
        nodes: dict[str, dict[str, str]] = {}
        owners: dict[str, dict[str, str]] = {}
        dropped = [Moved(kind, place, f"{level_of(place)}{GONE}{name_in(place)}") for kind, place in gone]
        axes: dict[str, str] = {}
        labels = {each.before: each.after for each in moves if each.kind == LABEL}
        named = [each for each in moves if each.kind != LABEL]
        for each in (*sorted(named, key=lambda move: move.kind == WEIGHTS), *dropped):
            level, old, new = level_of(each.before), name_in(each.before), name_in(each.after)
            if each.kind in ("pool", AXIS):
                axes[old] = new
            if each.kind != AXIS and not new.startswith(GONE):  # another may use the weights of what is gone
                owners.setdefault(scopes[level], {})[old] = new
            if each.kind not in (WEIGHTS, AXIS):
                nodes.setdefault(level, {})[old] = new
        return cls(nodes, owners, axes, labels)

    def name(self, place: str) -> str:
        """The new name of a node."""
        name = name_in(place)
        return self.nodes.get(level_of(place), {}).get(name, name)

    def owner(self, scope: str, name: str) -> str:
        """The new name of what has weights."""
        return self.owners.get(scope, {}).get(name, name)

    def graph(self, level: Level) -> Graph:
        """The graph of a level with every name as it is now."""
        found, place = Graph(level.graph.name), level.place
        for node in level.graph:
            now = self._node(node, level)
            slots = _slots(node, now)
            inputs, lengths = level.graph.inputs(node.name).items(), level.graph.lengths(node.name).items()
            found.add(
                now,
                {slots.get(slot, slot): self._result(each, place) for slot, each in inputs},
                {role: self.name(place + used) for role, used in level.graph.uses(node.name).items()},
                {self.axes.get(axis, axis): self._result(each, place) for axis, each in lengths},
            )
        return found

    def _node(self, node: Node, level: Level) -> Node:
        regions = tuple(
            Region(
                self.graph(inner),
                tuple(self.name(inner.place + name) for name in inner.arguments),
                tuple(self._result(each, inner.place) for each in inner.results),
            )
            for inner in level.inner(node)
        )
        now = with_regions(
            rename(node, self.name(level.place + node.name), lambda name: self.axes.get(name, name)), regions
        )
        match now:
            case OpNode():
                gone = GONE if now.name.startswith(GONE) else ""
                return replace(now, owner=gone + self.owner(level.scope, now.owner))
            case RouteNode() | DecisionNode():
                return replace(now, label=self.labels.get(now.label, now.label))
            case OutputNode() if node.name == OUTPUT + now.label:
                return replace(now, label=now.name.removeprefix(OUTPUT))
            case PoolNode() if isinstance(node, PoolNode):
                shares = self.nodes.get(level.place, {}).get(node.shares, now.shares)
                return replace(now, inside=self._path(node.inside), shares=shares)
            case _:
                return now

    def _result(self, result: Result, place: str) -> Result:
        return Result(self.name(place + result.node), result.index)

    def _path(self, value: str) -> str:
        """The path of a pool's modules, which is that of their axis; one of unlike modules has a number behind it."""
        pool, _, at = value.rpartition(".")
        return f"{self.axes[pool]}.{at}" if pool in self.axes and at.isdigit() else self.axes.get(value, value)


def _slots(before: Node, after: Node) -> Names:
    """The slots of a scan, which are called as its arguments."""
    if isinstance(before, ScanNode) and isinstance(after, ScanNode):
        return dict(zip(before.region.arguments, after.region.arguments, strict=True))
    return {}
