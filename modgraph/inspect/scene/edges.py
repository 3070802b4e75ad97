"""The edges of a scene: what flows between its boxes, through the borders of scans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modgraph.inspect.scene.values import Edge
from modgraph.ir import DecisionNode, Graph, Node, OpNode, PoolNode, Result, ScanNode
from modgraph.ops.array import Array
from modgraph.types import TensorType


def edges_of(graph: Graph, ids: Mapping[str, str]) -> Iterator[Edge]:
    """The edges of a graph and of the regions in it, those of a pool that stands in two graphs twice.

    `ids` are those of this graph's boxes by the names of nodes.
    """
    for node in graph:
        yield from _into(graph, node, ids)
        if isinstance(node, ScanNode):
            inside = {each.name: each.name for each in node.region.graph}
            yield from edges_of(node.region.graph, inside)
            yield from _carried(node)
        elif isinstance(node, PoolNode):
            for region, prefix in zip(node.regions, prefixes(node, ids[node.name]), strict=True):
                yield from edges_of(region.graph, {each.name: prefix + each.name for each in region.graph})


def _carried(scan: ScanNode) -> Iterator[Edge]:
    """From what is a state's next value back to the state."""
    for state, following in zip(scan.states, scan.following, strict=True):
        yield _edge(scan.region.graph, following, following.node, state, "carry", "next")


def _into(graph: Graph, node: Node, ids: Mapping[str, str]) -> Iterator[Edge]:
    here = ids[node.name]
    own = node.within if isinstance(node, DecisionNode) else None  # the box of a decision has its router's body
    array = isinstance(node, OpNode) and isinstance(
        node.op, Array
    )  # whose operand only tells how many examples there are
    for slot, source in graph.inputs(node.name).items() if not array else ():
        around = graph[source.node].within
        if own is not None and around is not None and own in around.chain():
            continue
        yield _edge(graph, source, ids[source.node], slot if isinstance(node, ScanNode) else here, "data", slot)
    for axis, source in graph.lengths(node.name).items():
        yield _edge(graph, source, ids[source.node], here, "length", axis)
    for role, used in graph.uses(node.name).items():
        yield Edge(ids[used], here, "uses", role)


def _edge(graph: Graph, result: Result, source: str, target: str, kind: str, slot: str) -> Edge:
    type_ = graph.type_of(result)
    return Edge(source, target, kind, slot, str(type_), short_type(type_))


def prefixes(pool: PoolNode, box: str) -> list[str]:
    """What ids of the regions of a pool begin with, whose box has an id."""
    return [f"{box}/"] if pool.alike else [f"{box}/{module}/" for module in range(pool.size)]


def short_type(type_: TensorType) -> str:
    """A type for a narrow place: `197×384`, `time×32`; nothing for a single number."""
    return "×".join(str(axis.size if axis.size is not None else axis.name) for axis in type_.shape)
