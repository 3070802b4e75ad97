"""Edits of a graph: the same architecture with more in it, every old weight under its old name."""

from __future__ import annotations

from dataclasses import replace

from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, PoolNode, RouteNode


def grow(graph: Graph, pool: str, by: int) -> Graph:
    """The graph whose pool has `by` modules more; types downstream follow.

    Raises `Misfit` where something downstream fits the old number only, `KeyError` if there is no such pool.
    """
    node = graph[pool]
    assert isinstance(node, PoolNode), f"{pool} is no pool"
    assert node.alike, f"the modules of {pool} are unlike: none says what a new one is"
    grown = replace(node, size=node.size + by, grown=node.grown + by)
    copy = Graph(graph.name, graph.parameters)
    for each in graph:
        copy.add(grown if each.name == pool else each, graph.inputs(each.name), graph.uses(each.name))
        if isinstance(each, OpNode | RouteNode):
            copy.replace(_retyped(copy, each))
    return copy


def _retyped(graph: Graph, node: OpNode | RouteNode) -> Node:
    """A node whose results have the types that its operands now give."""
    return replace(node, types=graph.signature(node).results)
