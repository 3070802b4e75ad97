"""The edges of a scene: what flows between its boxes, through the borders of scans."""

from __future__ import annotations

from collections.abc import Iterator

from modgraph.inspect.scene.values import Edge
from modgraph.ir import DecisionNode, Graph, OpNode, PoolNode, Result, ScanNode
from modgraph.ops.array import Array
from modgraph.types import TensorType


def edges_of(graph: Graph, prefix: str = "") -> Iterator[Edge]:
    """The edges of a graph and of the regions in it, those of a pool that stands in two graphs twice; the ids of this
    graph's boxes begin with the prefix."""

    def edge(result: Result, target: str, kind: str, slot: str) -> Edge:
        type_ = graph.type_of(result)
        return Edge(prefix + result.node, target, kind, slot, str(type_), short_type(type_))

    for node in graph:
        here = prefix + node.name
        own = node.within if isinstance(node, DecisionNode) else None  # the box of a decision has its router's body
        array = isinstance(node, OpNode) and isinstance(node.op, Array)  # its operand only gives the number of examples
        for slot, source in graph.inputs(node.name).items() if not array else ():
            around = graph[source.node].within
            if own is None or around is None or own not in around.chain():
                yield edge(source, slot if isinstance(node, ScanNode) else here, "data", slot)
        yield from (edge(source, here, "length", axis) for axis, source in graph.lengths(node.name).items())
        yield from (Edge(prefix + used, here, "uses", role) for role, used in graph.uses(node.name).items())
        if isinstance(node, ScanNode):
            inside = node.region.graph
            yield from edges_of(inside)
            for state, following in zip(node.states, node.following, strict=True):
                type_ = inside.type_of(following)
                yield Edge(following.node, state, "carry", "next", str(type_), short_type(type_))
        elif isinstance(node, PoolNode):
            for region, below in zip(node.regions, prefixes(node, here), strict=True):
                yield from edges_of(region.graph, below)


def prefixes(pool: PoolNode, box: str) -> list[str]:
    """What ids of the regions of a pool begin with, whose box has an id."""
    return [f"{box}/"] if pool.alike else [f"{box}/{module}/" for module in range(pool.size)]


def ids_of_nodes(graph: Graph, prefix: str = "", place: str = "") -> Iterator[tuple[str, str]]:
    """The places of nodes (`expert/0/fc1`) with the ids of their boxes: steps of scans have names of the whole model,
    modules their own."""
    for node in graph:
        yield place + node.name, prefix + node.name
        if isinstance(node, ScanNode):
            yield from ids_of_nodes(node.region.graph, prefix, f"{place}{node.name}/0/")
        elif isinstance(node, PoolNode):
            for at, inner in enumerate(prefixes(node, prefix + node.name)):
                yield from ids_of_nodes(node.regions[at].graph, inner, f"{place}{node.name}/{at}/")


def short_type(type_: TensorType) -> str:
    """A type for a narrow place: `197×384`, `time×32`; nothing for a single number."""
    return "×".join(str(axis.size if axis.size is not None else axis.name) for axis in type_.shape)
