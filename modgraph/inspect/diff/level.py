"""One graph of a model as it is compared: the whole, or the region of a pool's module or of a scan's step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from modgraph.inspect.diff.values import regions_of
from modgraph.ir import Graph, Node, Result, ScanNode


@dataclass(frozen=True, order=True)
class Edge:
    """What a node reads: by which relation, in which slot, of which node, and which of its results."""

    relation: str
    slot: str
    node: str
    index: int = 0


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one graph; of a region its arguments and results too.

    `place` is what places of its nodes begin with, `scope` what those of owners of weights do: names in a module of a
    pool are its own, all others the whole model's.
    """

    graph: Graph
    place: str = ""
    scope: str = ""
    arguments: Sequence[str] = ()
    results: Sequence[Result] = ()

    def inner(self, node: Node) -> list[Level]:
        """The regions of a node of this level."""
        places = [f"{self.place}{node.name}/{at}/" for at in range(len(regions_of(node)))]
        scopes = [self.scope] if isinstance(node, ScanNode) else places
        return [
            Level(region.graph, place, scope, region.arguments, region.results)
            for region, place, scope in zip(regions_of(node), places, scopes, strict=True)
        ]

    def walk(self) -> Iterator[Level]:
        """This level and all below it."""
        yield self
        for node in self.graph:
            for level in self.inner(node):
                yield from level.walk()

    @cached_property
    def sources(self) -> dict[str, list[Edge]]:
        """What each node reads, sources first."""
        return {node.name: [*self._sources(node)] for node in self.graph}

    @cached_property
    def users(self) -> dict[str, list[Edge]]:
        """What reads each node: the edges as those of the reader, `node` being the reader."""
        found: dict[str, list[Edge]] = {name: [] for name in self.sources}
        for name, edges in self.sources.items():
            for edge in edges:
                found[edge.node].append(Edge(edge.relation, edge.slot, name, edge.index))
        return found

    def _sources(self, node: Node) -> Iterator[Edge]:
        """Slots of a scan and lengths have names that may change: they are known by their place."""
        arguments = node.region.arguments if isinstance(node, ScanNode) else ()
        places = {name: str(at) for at, name in enumerate(arguments)}
        for slot, result in self.graph.inputs(node.name).items():
            yield Edge("inputs", places.get(slot, slot), result.node, result.index)
        for result in self.graph.lengths(node.name).values():
            yield Edge("lengths", "", result.node, result.index)
        for role, used in self.graph.uses(node.name).items():
            yield Edge("uses", role, used)
