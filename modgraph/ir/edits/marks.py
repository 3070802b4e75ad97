"""What is frozen in a graph, and what counts as added to it: by place, and said anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, PoolNode, RouterNode, ScanNode, TargetNode
from modgraph.ir.part import Part
from modgraph.ir.rewrite import rewritten
from modgraph.ir.weights import GraphWeight, node_weights


def frozen_places(graph: Graph) -> frozenset[str]:
    """The nodes with weights that are frozen; one of a pool's module as `pool/0/linear`."""
    return frozenset(weight.place for weight in _weights(graph) if weight.frozen)


def added(graph: Graph) -> dict[str, int]:
    """How many of the last places count as added, by pool or target; those of which none do are left out."""
    found = {name: pool.grown for name, pool in graph.pools().items()}
    found |= {target.name: target.grown for target in graph.of_kind(TargetNode)}
    return {name: count for name, count in found.items() if count}


def marked(graph: Graph, frozen: Callable[[str, list[str]], bool], grown: Mapping[str, int]) -> Graph:
    """A graph in which all with weights is frozen that `frozen` says, told its place and the names of its weights, and
    so many places count as added."""
    names: dict[str, list[str]] = {}
    for weight in _weights(graph):
        names.setdefault(weight.place, []).append(weight.name)
    marks = {place: frozen(place, own) for place, own in names.items()}

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


def _weights(graph: Graph) -> Iterator[GraphWeight]:
    """The weights of every node, in scans and pools too, also those that several nodes use."""
    for part in graph.parts():
        for node in part.graph:
            if not isinstance(node, ScanNode):
                yield from node_weights(part.graph, node)
