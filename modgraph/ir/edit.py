"""Edits of a graph: the same architecture with more in it, every old weight under its old name."""

from __future__ import annotations

from dataclasses import replace

from modgraph.ir.graph import Graph, Part
from modgraph.ir.node import InputNode, Node, OpNode, PoolNode, TargetNode
from modgraph.ir.rewrite import rewritten
from modgraph.types import Axis


def grow(graph: Graph, pool: str, by: int) -> Graph:
    """The graph whose pool has `by` modules more, and so have those that share its axis; types downstream follow.

    Raises `Misfit` where something downstream fits the old number only, `KeyError` if there is no such pool.
    """
    axis = graph.pools()[pool].axis
    longer = Axis(graph.pools()[pool].size + by, axis.name)
    for each in graph.pools().values():
        assert each.alike or each.axis != axis, f"the modules of {each.name} are unlike: none says what a new one is"

    def grown(node: Node, part: Part) -> Node:
        match node:
            case PoolNode() if node.axis == axis:
                return replace(node, size=node.size + by, grown=node.grown + by)
            case OpNode():
                return replace(node, op=node.op.with_extent(axis.name, longer.size))
            case InputNode() | TargetNode():
                (type_,) = node.types
                return replace(node, types=(type_.with_shape([longer if a == axis else a for a in type_.shape]),))
            case _:
                return node

    return rewritten(graph, grown)
