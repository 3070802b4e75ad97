"""What nodes and calls are called where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.inspect.scene.edges import prefixes
from modgraph.ir import Call, DecisionNode, Graph, GrowthNode, Node, PoolNode, RouteNode, RouterNode, ScanNode


@dataclass(frozen=True)
class Level:
    """Where a body stands: its graph, what ids in it begin with, the paths of its nodes and weights, and in a scan the
    nodes of the graph around, whose pools and routers it shares."""

    graph: Graph
    prefix: str = ""
    path: str = ""
    weights: str = ""
    shared: frozenset[str] = frozenset()

    def label_of(self, node: Node) -> str:
        """What a node is called here: pools and routers as their weights, a route as its pool."""
        if isinstance(node, RouteNode | DecisionNode):
            words = self.graph.pool_of(node).name.split(".")
            first = max((at for at, word in enumerate(words) if not word.isdecimal()), default=0)
            return ".".join(words[first:])
        declared = isinstance(node, PoolNode | RouterNode | GrowthNode) and node.name.startswith(f"{self.weights}.")
        return below(self.weights if declared else self.path, node.name)

    def label(self, call: Call) -> str:
        """What the author calls a call: a module by its name, a block by its own where the use has no other."""
        if call.kind == "module":
            return below(self.weights, call.weights)
        label = below(self.path, call.path)
        last = label.rpartition(".")[2]
        return call.definition if call.definition in (last, last.rstrip("0123456789")) else label


def below(path: str, name: str) -> str:
    """A name as it stands below a path."""
    return name.removeprefix(f"{path}.") if path else name


def ids_of_nodes(graph: Graph, prefix: str = "") -> Iterator[str]:
    for node in graph:
        yield prefix + node.name
        if isinstance(node, ScanNode):
            yield from ids_of_nodes(node.region.graph, prefix)
        elif isinstance(node, PoolNode):
            for region, inner in zip(node.regions, prefixes(node, prefix + node.name), strict=True):
                yield from ids_of_nodes(region.graph, inner)
