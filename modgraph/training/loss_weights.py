"""How much losses count: the recipe's word on the spec's losses, as an edit of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from modgraph.diagnostics import Diagnostic, did_you_mean
from modgraph.ir import Expanded, Graph, LossNode, Node, OpNode, Part, Result, rewritten
from modgraph.ops.arithmetic import Multiply
from modgraph.training.continual.masking import PREFIX, losses_called
from modgraph.training.errors import UnknownLoss


def unfit_losses(graph: Graph, weights: Mapping[str, float]) -> Iterator[tuple[str, Diagnostic]]:
    """Patterns that name no loss."""
    known = [loss.removeprefix(PREFIX) for loss in graph.losses]
    for pattern in weights:
        if not losses_called(graph, [pattern]):
            suggestion = did_you_mean(pattern, known, "its losses are called: {known}")
            yield pattern, UnknownLoss(pattern=pattern, suggestion=suggestion)


def weighing_losses(graph: Graph, weights: Mapping[str, float]) -> Graph:
    """The graph whose losses are multiplied by the weights of patterns that name them; of several the last counts.

    A pattern that names none changes nothing: `unfit_losses` reports it.
    """
    factors: dict[str, float] = {}
    for pattern, weight in weights.items():
        factors |= dict.fromkeys(losses_called(graph, [pattern]), weight)

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
