"""How much losses count: the recipe's word on the spec's losses, as an edit of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Expanded, Graph, LossNode, Node, OpNode, Part, Result, rewritten
from modgraph.ops.arithmetic import Multiply
from modgraph.training.continual.masking import PREFIX, losses_called
from modgraph.training.errors import UnknownLoss


def weighing_losses(graph: Graph, weights: Mapping[str, float]) -> Graph:
    """The graph whose losses are multiplied by the weights of patterns that name them; of several the last counts.

    Raises `ModgraphError` for a pattern that names none.
    """
    factors: dict[str, float] = {}
    for pattern, weight in weights.items():
        named = losses_called(graph, [pattern])
        if not named:
            known = [loss.removeprefix(PREFIX) for loss in graph.losses]
            suggestion = did_you_mean(pattern, known, "its losses are called: {known}")
            raise ModgraphError([UnknownLoss(pattern=pattern, suggestion=suggestion)])
        factors |= dict.fromkeys(named, weight)

    def changed(node: Node, part: Part) -> Node | Expanded:
        factor = factors.get(node.name, 1.0)
        return Expanded(partial(_weighed, node, factor)) if isinstance(node, LossNode) and factor != 1 else node

    return rewritten(graph, changed)


def _weighed(
    loss: LossNode, factor: float, graph: Graph, inputs: Mapping[str, Result], lengths: Mapping[str, Result]
) -> tuple[Result, ...]:
    """A loss, and before it its value times a factor."""
    name = f"{loss.name}.weighed"
    while name in graph:
        name += "_"
    ((slot, value),) = inputs.items()
    op = OpNode(
        name=name, op=Multiply(left=factor, right=None), owner=name, types=(graph.type_of(value),), span=loss.span
    )
    graph.add(op, {"x": value})
    graph.replace(replace(op, types=graph.signature(op).results))
    graph.add(loss, {slot: Result(name)}, lengths=lengths)
    return (Result(loss.name),)
