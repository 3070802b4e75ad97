"""Probabilities where logits are expected."""

from __future__ import annotations

from collections.abc import Iterator

from modgraph.diagnostics import Note, Report
from modgraph.elaboration import errors
from modgraph.ir import Graph, OpNode, PoolNode, Result
from modgraph.ops.activation import Sigmoid
from modgraph.ops.along_axis import Softmax
from modgraph.ops.choice import MaskedSoftmax
from modgraph.ops.zeros import ANYWHERE
from modgraph.routers.prelude import is_prelude
from modgraph.types import Axis

NORMALISE = Softmax | MaskedSoftmax


def find_probabilities(graph: Graph, report: Report) -> None:
    """Warn of ops that apply a softmax to probabilities, and of losses of logits that get numbers between zero and
    one."""
    for each in _graphs(graph):
        for node in each.of_kind(OpNode):
            made = _find_bounded(node, each)
            if made is not None and not (node.span is not None and is_prelude(node.span.source)):
                notes = (Note(text="made here", span=made.span),)
                way_out = f"leave {made.op.name} out" + ", or write log_softmax" * isinstance(made.op, NORMALISE)
                facts = {"op": node.op.name, "made": made.op.name, "way_out": way_out}
                report.add(errors.NoLogits(span=node.span, notes=notes, **facts))


def _graphs(graph: Graph) -> Iterator[Graph]:
    """A graph, and those of its scans and pools."""
    for part in graph.parts():
        yield part.graph
        for pool in part.graph.of_kind(PoolNode):
            yield from (region.graph for region in pool.regions)


def _find_bounded(node: OpNode, graph: Graph) -> OpNode | None:
    """The op that computes the logits of another op, if it gives probabilities or numbers between zero and one."""
    inputs = graph.inputs(node.name)
    if not node.op.takes_logits or node.op.takes_logits not in inputs:
        return None
    result = inputs[node.op.takes_logits]
    axis = graph.type_of(result).shape[_position(node, graph)]
    made = _find_source(result, graph)
    if made is None:
        return None
    if isinstance(made.op, NORMALISE):
        return made if graph.type_of(Result(made.name)).shape[_position(made, graph)] == axis else None
    return made if node.op.objective else None


def _position(node: OpNode, graph: Graph) -> int:
    """The place of the axis of an op's softmax."""
    bound: dict[str, int | Axis] = graph.signature(node).axes.bound
    place = bound.get("position", -1)
    return place if isinstance(place, int) else -1


def _find_source(result: Result, graph: Graph) -> OpNode | None:
    """The op that bounds or normalises a value, behind ops that only move axes or drop numbers."""
    node = graph[result.node]
    while isinstance(node, OpNode) and not isinstance(node.op, NORMALISE | Sigmoid):
        inputs = [*graph.inputs(node.name).values()]
        moves = len(inputs) == 1 and node.op.propagate_choices(graph.signature(node), (ANYWHERE,)) is not None
        if not (moves or node.op.narrows or node.op.name in ("identity", "dropout")):
            return None
        node = graph[inputs[0].node]
    return node if isinstance(node, OpNode) else None
