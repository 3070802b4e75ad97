"""Choices that are drawn, and what a graph's draws may be told instead."""

from __future__ import annotations

from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, Result
from modgraph.ops.along_axis import Sum
from modgraph.ops.axes import NewAxis
from modgraph.ops.padding import MaskPadding
from modgraph.ops.shape import Rename
from modgraph.types import TensorType

SAME_ORDER = (NewAxis, Rename, Sum, MaskPadding)  # as long as only axes of one place come and go


def drawn_by(choice: Result, graph: Graph) -> OpNode | None:
    """The op that drew a choice along its last axis, if nothing else became of it than axes of one place, and nothing
    tells that op what to take."""
    node = graph[choice.node]
    while isinstance(node, OpNode) and isinstance(node.op, SAME_ORDER):
        (source,) = graph.inputs(node.name).values()
        if _lengths(graph.type_of(source)) != _lengths(node.types[0]):
            return None
        node = graph[source.node]
    if not isinstance(node, OpNode) or not is_free_draw(node, graph):
        return None
    return node if graph.signature(node).axes["position"] == -1 else None


def is_free_draw(node: Node, graph: Graph) -> bool:
    """Whether a node draws, and nothing that flows into it tells it what to take."""
    return isinstance(node, OpNode) and node.op.draws and "told" not in graph.inputs(node.name)


def free_draws(graph: Graph) -> list[OpNode]:
    """The ops of this very graph that draw."""
    return [node for node in graph.of_kind(OpNode) if is_free_draw(node, graph)]


def _lengths(type_: TensorType) -> list[int | str]:
    return [axis.size or axis.name for axis in type_.shape if axis.size != 1]


def told(draw: str) -> str:
    """Under what name a batch tells a draw which places to take; no name in a spec has a colon."""
    return f"{draw}:told"
