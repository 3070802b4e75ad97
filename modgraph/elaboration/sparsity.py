"""What is known of weights before anything is computed: which of them a choice leaves at zero."""

from __future__ import annotations

from dataclasses import dataclass

from modgraph.ir import Graph, OpNode, Result
from modgraph.types import Axis


@dataclass(frozen=True)
class Support:
    """A choice of at most `k` along an axis, and what it was made by: wherever it is zero, so are the weights."""

    choice: Result
    scores: Result
    axis: Axis
    place: int  # of that axis, counted from the last
    k: int


def support_of(weights: Result, graph: Graph) -> Support | None:
    """The choice behind weights of the same shape, through whatever is zero where it is."""
    if weights.node not in graph or not isinstance(node := graph[weights.node], OpNode):
        return None
    operands = list(graph.inputs(node.name).values())
    chosen = node.op.chosen(graph.signature(node))
    if chosen is not None:
        place, k = chosen
        return Support(weights, operands[0], node.types[0].shape[place], place, k)
    for place in node.op.zero_with():
        if place < len(operands) and graph.type_of(operands[place]).shape == node.types[0].shape:
            found = support_of(operands[place], graph)
            if found is not None:
                return found
    return None
