"""What is frozen in a graph, and what counts as added to it: by place, and said anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, PoolNode, RouterNode, TargetNode
from modgraph.ir.part import Part
from modgraph.ir.rewrite import rewritten
from modgraph.ir.weights import below

Learned = tuple[str, OpNode | RouterNode, list[str]]


def frozen_places(graph: Graph) -> frozenset[str]:
    """The nodes with weights that are frozen; one of a pool's module as `pool/0/linear`."""
    return frozenset(place for place, node, _ in _learned(graph) if node.frozen)


def added(graph: Graph) -> dict[str, int]:
    """How many of the last places count as added, by pool or target; those of which none do are left out."""
    found = {name: pool.grown for name, pool in graph.pools().items()}
    found |= {target.name: target.grown for target in graph.of_kind(TargetNode)}
    return {name: count for name, count in found.items() if count}


def marked(graph: Graph, frozen: Callable[[str, list[str]], bool], grown: Mapping[str, int]) -> Graph:
    """A graph in which all with weights is frozen that `frozen` says, told its place and the names of its weights, and
    so many places count as added."""
    marks = {place: frozen(place, names) for place, _, names in _learned(graph)}

    def rule(node: Node, part: Part) -> Node:
        match node:
            case OpNode() | RouterNode():
                place = part.place + node.name
                return replace(node, frozen=marks[place]) if place in marks else node
            case PoolNode() if node.inside:
                return node
            case PoolNode() | TargetNode():
                return replace(node, grown=grown.get(node.name, 0))
            case _:
                return node

    return rewritten(graph, rule)


def _learned(graph: Graph) -> Iterator[Learned]:
    """All that has weights, in scans and pools too: its place, itself, and the names of its weights."""
    for part in graph.parts():
        yield from _learned_in(part.graph)


def _learned_in(graph: Graph) -> Iterator[Learned]:
    for node in graph:
        match node:
            case OpNode() if node.op.all_weights():
                yield node.name, node, [below(node.owner, weight.name) for weight in node.op.all_weights()]
            case RouterNode() if node.weights:
                yield node.name, node, [below(node.name, weight.name) for weight in node.weights]
            case PoolNode():
                yield from _in_pool(node)


def _in_pool(pool: PoolNode) -> Iterator[Learned]:
    for at, region in enumerate(pool.regions):
        modules = [str(module) for module in (range(pool.size) if pool.alike else (at,))]
        for place, node, names in _learned_in(region.graph):
            shared = _shared(node) if pool.alike else set()
            held = [
                f"{pool.name}.{holder}.{name}"
                for name in names
                for holder in (["shared"] if name in shared else modules)
            ]
            yield f"{pool.name}/{at}/{place}", node, held


def _shared(node: OpNode | RouterNode) -> set[str]:
    """The weights of an op that the modules around it have in common, as their region calls them."""
    if not isinstance(node, OpNode):
        return set()
    return {below(node.owner, weight.name) for weight in node.op.all_weights() if weight.shared}
