"""What names have become, those of nodes, of owners of weights and of axes; and the edit that a diff describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from modgraph.inspect.diff.changes import OUTPUT, Diff, Moved, model_of
from modgraph.inspect.diff.level import Level, regions_of, split_place, with_regions
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

NODE, WEIGHTS, AXIS, LABEL = "node", "weights", "axis", "label"  # all but nodes are kinds of moves
GONE = "-"  # before the name of a node that is not there after
PARAMETERS = "parameters."


class Renames:
    """New names: of nodes by the level that they stand in, of owners of weights by scope, of axes, and the labels of
    decisions. A name that is not listed has stayed."""

    def __init__(self, moves: Iterable[Moved], graph: Graph, gone: Iterable[tuple[str, str]] = ()) -> None:
        """The moves in a graph, and the kinds and places of nodes that are not there after. Owners of weights are
        called as their nodes where nothing else is said, axes as their pools."""
        scopes = {level.place: level.scope for level in Level(graph).walk()}
        self.names: dict[tuple[str, str], dict[str, str]] = {}
        for each in sorted(moves, key=lambda move: move.kind == WEIGHTS):
            (level, old), new = split_place(each.before), split_place(each.after)[1]
            if each.kind in (LABEL, AXIS):
                self._set(each.kind, "", old, new)
                continue
            self._set(WEIGHTS, scopes[level], old, new)
            if each.kind != WEIGHTS:
                self._set(NODE, level, old, new)
            if each.kind == "pool":
                self._set(AXIS, "", old, new)
        for kind, place in gone:  # another may use the weights of what is gone
            level, name = split_place(place)
            self._set(NODE, level, name, GONE + name)
            if kind == "pool":
                self._set(AXIS, "", name, GONE + name)

    def _set(self, kind: str, where: str, old: str, new: str) -> None:
        self.names.setdefault((kind, where), {})[old] = new

    def naming(self, kind: str, where: str = "") -> Callable[[str], str]:
        """How names of a kind are now."""
        names = self.names.get((kind, where), {})
        return lambda name: names.get(name, name)

    def graph(self, level: Level) -> Graph:
        """The graph of a level with every name as it is now."""
        found = Graph(level.graph.name)
        named, axis, read = self.naming(NODE, level.place), self.naming(AXIS), self._reader(level)
        for node in level.graph:
            now = self._node(node, level)
            arguments: Mapping[str, str] = {}
            if isinstance(node, ScanNode) and isinstance(now, ScanNode):  # slots are called as arguments
                arguments = dict(zip(node.region.arguments, now.region.arguments, strict=True))
            inputs = {arguments.get(slot, slot): read(each) for slot, each in level.graph.inputs(node.name).items()}
            lengths = {axis(name): read(each) for name, each in level.graph.lengths(node.name).items()}
            uses = {role: named(used) for role, used in level.graph.uses(node.name).items()}
            found.add(now, inputs, uses, lengths)
        return found

    def _reader(self, level: Level) -> Callable[[Result], Result]:
        named = self.naming(NODE, level.place)
        return lambda result: Result(named(result.node), result.index)

    def _node(self, node: Node, level: Level) -> Node:
        named, axis = self.naming(NODE, level.place), self.naming(AXIS)
        regions = []
        for inner in level.inner(node):
            arguments = tuple(map(self.naming(NODE, inner.place), inner.arguments))
            regions.append(Region(self.graph(inner), arguments, tuple(map(self._reader(inner), inner.results))))
        now = with_regions(rename(node, named(node.name), axis), tuple(regions))
        match now:
            case OpNode():
                gone = GONE if now.name.startswith(GONE) else ""
                return replace(now, owner=gone + self.naming(WEIGHTS, level.scope)(now.owner))
            case RouteNode() | DecisionNode():
                return replace(now, label=self.naming(LABEL)(now.label))
            case OutputNode() if node.name == OUTPUT + now.label:
                return replace(now, label=now.name.removeprefix(OUTPUT))
            case PoolNode() if isinstance(node, PoolNode):
                # the path of modules is that of their axis; one of unlike modules has a number behind it
                path, dot, at = node.inside.rpartition(".")
                inside = f"{axis(path)}.{at}" if dot and at.isdigit() and axis(path) != path else axis(node.inside)
                shared = named(node.shares)
                return replace(now, inside=inside, shares=now.shares if shared == node.shares else shared)
            case _:
                return now


def applied(diff: Diff, before: Graph) -> Graph:
    """The graph that a diff leads to from the one it was made of."""
    model = model_of(before) | {each.name: each.after for each in diff.model}
    parameters = {
        name.removeprefix(PARAMETERS): value
        for name, value in model.items()
        if name.startswith(PARAMETERS) and value is not None
    }
    known = {each.after: each.graph for each in diff.changed} | {each.place: each.graph for each in diff.added}

    def fill(graph: Graph, level: Level, inputs: tuple[str, ...] = ()) -> Graph:
        """Add the nodes of a level that has its new names: inputs in their order, sources first."""
        kept = [node.name for node in level.graph if not node.name.startswith(GONE)]
        added = [name for place, name in (split_place(each.place) for each in diff.added) if place == level.place]
        homes = {name: known.get(level.place + name, level.graph) for name in (*inputs, *kept, *added)}
        sources: dict[str, list[str]] = {}
        for name, home in homes.items():
            results = (*home.inputs(name).values(), *home.lengths(name).values())
            sources[name] = [*(each.node for each in results), *home.uses(name).values()]
        for name in TopologicalSorter(sources).static_order():
            home = homes[name]
            regions = [*regions_of(home[name])]
            inner = level.inner(level.graph[name]) if name in level.graph else []
            for at, (region, below) in enumerate(zip(regions, inner, strict=False)):
                regions[at] = replace(region, graph=fill(Graph(""), below))
            node = with_regions(home[name], tuple(regions))
            graph.add(node, home.inputs(name), home.uses(name), home.lengths(name))
        return graph

    renames = Renames(diff.moved, before, [(each.kind, each.place) for each in diff.removed])
    return fill(Graph(model["name"], parameters), Level(renames.graph(Level(before))), model["inputs"])
