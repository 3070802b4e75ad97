"""What a call is, among the calls of its graph: which nodes are in it, and what it gives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from modgraph.ir import Body, DecisionNode, Graph, GrowthNode, LossNode, RouterNode
from modgraph.ir.node import Node, OpNode, PoolNode, Result, RouteNode, ScanNode


def nodes_in(body: Body) -> Iterator[Node]:
    """The nodes of a body and of the calls in it, in order, without pools and routers, which compute nothing."""
    for item in body.items:
        if isinstance(item, Body):
            yield from nodes_in(item)
        elif isinstance(item, Node) and not isinstance(item, PoolNode | RouterNode):
            yield item


Readers = dict[Result, set[str]]


def readers_in(graph: Graph, ends: Iterable[Result]) -> Readers:
    """By result, the nodes that read it on the way to the ends; not those that only record it or make it small."""
    found: Readers = {end: {""} for end in ends}
    nodes = graph.ancestors(result.node for result in found) if found else {node.name for node in graph}
    for node in graph:
        if node.name in nodes and not isinstance(node, DecisionNode | GrowthNode | LossNode):
            for result in graph.inputs(node.name).values():
                found.setdefault(result, set()).add(node.name)
    return found


def values_of(names: Collection[str], graph: Graph, readers: Readers) -> tuple[Result, ...]:
    """What a call of these nodes gives: its results that others read on the way to the ends, or at all."""
    results = [Result(name, index) for name in names for index in range(len(graph[name].types))]
    values = [result for result in results if not readers.get(result, set()).issubset(names)]
    return tuple(values or [result for result in results if not {*graph.users(result.node)}.issubset(names)])


def ranks_of(graph: Graph) -> dict[str, int]:
    """The order of the paths at which modules and weights stand: that of their first nodes, those of scans in their
    place."""
    ranks: dict[str, int] = {}
    for name in _places(graph, set()):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            ranks.setdefault(".".join(parts[:end]), len(ranks))
    return ranks


def _places(graph: Graph, known: set[str]) -> Iterator[str]:
    for node in graph:
        match node:
            case OpNode():
                again = node.owner in known and not node.op.all_weights()
                known.add(node.owner)
                yield node.name if again else node.owner
            case RouteNode():
                yield graph.router_of(node).name
            case PoolNode():
                yield node.name
            case ScanNode():
                yield from _places(node.region.graph, known)
