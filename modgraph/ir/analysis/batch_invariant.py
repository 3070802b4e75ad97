"""What is a function of its operands, and what of that is the same for every example: computed once, not for each."""

from __future__ import annotations

from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, PoolNode, RouteNode
from modgraph.ops import Op
from modgraph.ops.array import NextState, State
from modgraph.routers import GATHERED
from modgraph.routers.weighted import EveryModule


def batch_invariant(graph: Graph) -> frozenset[str]:
    """The ops and routes whose values are made of learned and given arrays alone, nothing of it by chance."""
    found: set[str] = set()
    for node in graph:
        sources = {source.node for source in graph.inputs(node.name).values()}
        if is_array(node) or (sources and sources <= found and varies_with_sources(node, graph)):
            found.add(node.name)
    return frozenset(found)


def computed_once(graph: Graph) -> frozenset[str]:
    """The nodes of a graph that are computed once for a batch: arrays, and what is marked so."""
    return frozenset(node.name for node in graph if is_computed_once(node))


def is_computed_once(node: Node) -> bool:
    """Whether a node is computed once for a batch; a route may have its stacked weights alone made once."""
    route = isinstance(node, RouteNode) and node.once and node.lowering != GATHERED
    return is_array(node) or route or (isinstance(node, OpNode) and node.once)


def is_array(node: Node) -> bool:
    """Whether a node is an array that is learned or given, the same for every example."""
    return isinstance(node, OpNode) and node.op.is_array


def varies_with_sources(node: Node, graph: Graph) -> bool:
    """Whether a node's value differs between examples only where what flows into it does."""
    sound = not _by_chance(node.op) if isinstance(node, OpNode) else is_function(node, graph)
    return sound and all(type_.per == "example" for type_ in node.types)


def is_function(node: Node, graph: Graph) -> bool:
    """Whether a node is a function of its operands and of weights that are learned."""
    match node:
        case OpNode(op=op):
            moves = isinstance(op, State | NextState) or any(weight.buffer for weight in op.all_weights())
            return len(node.types) == 1 and not (_by_chance(op) or moves or op.over_batch)
        case RouteNode():
            return isinstance(graph.declaration_of(node), EveryModule) and is_function(graph.pool_of(node), graph)
        case PoolNode():
            inner = ((each, region.graph) for region in node.regions for each in region.graph)
            return all(is_function(*each) for each in inner if isinstance(each[0], OpNode | RouteNode | PoolNode))
        case _:
            return False


def _by_chance(op: Op) -> bool:
    return bool(op.without_chance() != op or op.zero_outside_training or op.outside_training or op.draws)
