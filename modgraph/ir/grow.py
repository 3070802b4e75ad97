"""More modules for a pool: the same architecture with more in it, every old weight under its old name."""

from __future__ import annotations

from dataclasses import replace

from modgraph.ir.graph import Graph, Part
from modgraph.ir.node import InputNode, Node, OpNode, PoolNode, TargetNode
from modgraph.ir.rewrite import rewritten
from modgraph.types import Axis


def grow(graph: Graph, axis: str, by: int) -> Graph:
    """The graph whose pool has `by` modules more (or fewer, where negative), and so have those that share its axis;
    types downstream follow.

    Raises `Misfit` where something downstream fits the old number only, `KeyError` if there is no such pool.
    """
    before = growing_axis(graph, axis)
    assert before.size is not None and before.size + by >= 1, f"nothing would be left of {before}"
    longer = Axis(before.size + by, before.name)
    for each in graph.pools().values():
        assert each.alike or each.axis != before, f"the modules of {each.name} are unlike: none says what a new one is"

    def grown(node: Node, part: Part) -> Node:
        match node:
            case PoolNode() if node.axis == before:
                return replace(node, size=node.size + by, grown=max(0, node.grown + by))
            case OpNode():
                return replace(node, op=node.op.with_extent(before.name, longer.size))
            case InputNode() | TargetNode():
                (type_,) = node.types
                return replace(node, types=(type_.with_shape([longer if a == before else a for a in type_.shape]),))
            case _:
                return node

    return rewritten(graph, grown)


def growing_axis(graph: Graph, name: str) -> Axis:
    """The axis that a name means: that of a pool's modules. Raises `KeyError`."""
    return graph.pools()[name].axis


def grown_along(graph: Graph, axis: Axis) -> int:
    """How many places of an axis were added to a model that had been trained before, at most."""
    return max((pool.grown for pool in graph.pools().values() if pool.axis == axis), default=0)
