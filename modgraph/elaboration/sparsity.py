"""What is known of weights before anything is computed: which of them a choice leaves at zero."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modgraph.ir import Graph, OpNode, Result
from modgraph.types import Axis


@dataclass(frozen=True)
class Support:
    """A choice of at most `k` along an axis, any number if that is None, and what it was made by.

    Wherever it is zero, so are the weights. `narrowed` counts what took something from the choice since it was made.
    """

    choice: Result
    scores: Result
    axis: Axis
    place: int  # of that axis, counted from the last
    k: int | None
    narrowed: int = 0

    @property
    def width(self) -> tuple[float, int]:
        """Of two choices the lesser is the narrower."""
        return float("inf") if self.k is None else self.k, -self.narrowed


def support_of(weights: Result, graph: Graph) -> Support | None:
    """The narrowest choice behind weights of the same shape, through whatever is zero where it is."""
    if weights.node not in graph or not isinstance(node := graph[weights.node], OpNode):
        return None
    operands = list(graph.inputs(node.name).values())
    chosen = node.op.chosen(graph.signature(node))
    if chosen is not None:
        place, k = chosen
        return Support(weights, operands[0], node.types[0].shape[place], place, k)
    alike = [
        operands[place]
        for place in node.op.zero_with()
        if place < len(operands) and graph.type_of(operands[place]).shape == node.types[0].shape
    ]
    found = min(filter(None, (support_of(each, graph) for each in alike)), key=lambda each: each.width, default=None)
    if found is not None and node.op.narrows and found.choice == graph.inputs(node.name)[node.op.narrows]:
        return replace(found, choice=weights, narrowed=found.narrowed + 1)
    return found
