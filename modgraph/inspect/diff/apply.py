"""The edit that a diff describes, applied to a graph."""

from __future__ import annotations

from dataclasses import replace
from graphlib import TopologicalSorter

from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.renames import GONE, Renames, level_of, name_in
from modgraph.inspect.diff.values import Diff, model_of, regions_of, with_regions
from modgraph.ir import Graph, Node

PARAMETERS = "parameters."


def applied(diff: Diff, before: Graph) -> Graph:
    """The graph that a diff leads to from the one it was made of."""
    model = model_of(before) | {each.name: each.after for each in diff.model}
    given = {name: value for name, value in model.items() if name.startswith(PARAMETERS) and value is not None}
    found = Graph(model["name"], {name.removeprefix(PARAMETERS): value for name, value in given.items()})
    renames = Renames.of(diff.moved, before, [(each.kind, each.place) for each in diff.removed])
    return _Edit(diff).fill(found, Level(renames.graph(Level(before))), model["inputs"])


class _Edit:
    """A diff, with the graphs that nodes stand in after by their place."""

    def __init__(self, diff: Diff) -> None:
        self.known = {each.after: each.graph for each in diff.changed} | {each.place: each.graph for each in diff.added}
        self.added: dict[str, list[str]] = {}
        for each in diff.added:
            self.added.setdefault(level_of(each.place), []).append(name_in(each.place))

    def fill(self, graph: Graph, level: Level, inputs: tuple[str, ...] = ()) -> Graph:
        """Add the nodes of a level that has its new names: inputs in their order, sources first."""
        kept = [node.name for node in level.graph if not node.name.startswith(GONE)]
        names = dict.fromkeys([*inputs, *kept, *self.added.get(level.place, ())])
        homes = {name: self.known.get(level.place + name, level.graph) for name in names}
        sources = {name: _sources(home, name) for name, home in homes.items()}
        for name in TopologicalSorter(sources).static_order():
            home = homes[name]
            node = self._node(home[name], level, name)
            graph.add(node, home.inputs(name), home.uses(name), home.lengths(name))
        return graph

    def _node(self, now: Node, level: Level, name: str) -> Node:
        """A node with the regions that it had as they are now."""
        regions = [*regions_of(now)]
        for at, inner in enumerate(level.inner(level.graph[name]) if name in level.graph else ()):
            if at < len(regions):
                regions[at] = replace(regions[at], graph=self.fill(Graph(""), inner))
        return with_regions(now, tuple(regions))


def _sources(graph: Graph, name: str) -> list[str]:
    results = (*graph.inputs(name).values(), *graph.lengths(name).values())
    return [*(each.node for each in results), *graph.uses(name).values()]
