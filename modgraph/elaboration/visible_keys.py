"""Explains which keys an attention written as a route lets its queries see, and how it hides later ones."""

from __future__ import annotations

from modgraph.diagnostics import Note
from modgraph.ir import Graph, OpNode, Result
from modgraph.ir.analysis.bands import BandFinder, Bands
from modgraph.ir.analysis.lattice import Interval
from modgraph.ops.along_axis import Softmax
from modgraph.ops.choice import MaskedSoftmax
from modgraph.ops.compared import Where
from modgraph.ops.linear import Contract
from modgraph.types import Axis

Found = tuple[Axis, tuple[Note, ...], str]  # the summed axis, notes on the weights, and a way out
HIDDEN = "hide keys by a choice: (scores, visible) -> masked_softmax; after where(…) their weights are small, not zero"


def explain_readings(node: OpNode, graph: Graph) -> Found | None:
    """Explain why an op that works along one of two readings of an axis reads later tokens; None for other ops."""
    if isinstance(node.op, Softmax | MaskedSoftmax):
        return _explain_softmax(node, graph)
    if not isinstance(node.op, Contract) or not isinstance(node.op.axis, str):
        return None
    for weights in graph.inputs(node.name).values():
        shape = graph.type_of(weights).shape
        keys = next((axis for axis in shape if axis.name == node.op.axis), None)
        queries = None if keys is None else _find_other(keys, shape)
        if keys is not None and queries is not None:
            return keys, *_explain_weights(weights, queries, keys, graph)
    return None


def _explain_softmax(node: OpNode, graph: Graph) -> Found | None:
    """A softmax along an axis of queries: that of keys is meant."""
    shape = node.types[0].shape
    axis = shape[graph.signature(node).axes["position"]]
    keys = _find_other(axis, shape)
    if keys is None or axis.of:
        return None
    return axis, (), f'take the softmax over the keys: {node.op.name}(axis="{keys.name}")'


def _find_other(axis: Axis, shape: tuple[Axis, ...]) -> Axis | None:
    """Find the other reading of an axis of any length."""
    return next((each for each in shape if axis.is_padded and each != axis and each.lengths == axis.lengths), None)


def _explain_weights(weights: Result, queries: Axis, keys: Axis, graph: Graph) -> tuple[tuple[Note, ...], str]:
    """Describe the keys at which weights may not be zero, and how to hide later ones."""
    places = f'(q -> positions(axis="{queries.name}")) >= (k -> positions(axis="{keys.name}"))'
    way_out = f"choose no later keys: (scores, {places}) -> masked_softmax"
    if (softmax := _find_softmax(weights, graph)) is not None and _reads_where(softmax, graph):
        return (), HIDDEN
    bands, shape = BandFinder(graph).find(weights), graph.type_of(weights).shape
    at, to = (shape.index(axis) - len(shape) for axis in (queries, keys))
    offsets = Interval(None, None) if bands is None else _find_offsets(bands, at, to)
    text = f'a place of "{queries.name}" sees {_format_offsets(offsets, keys.name)}'
    return (Note(text=text, span=graph[weights.node].span),), way_out


def _find_softmax(weights: Result, graph: Graph) -> OpNode | None:
    """Find the softmax nearest behind weights, through ops on one value."""
    node = graph[weights.node]
    while isinstance(node, OpNode) and not isinstance(node.op, Softmax):
        sources = [*graph.inputs(node.name).values()]
        if len(sources) != 1:
            return None
        node = graph[sources[0].node]
    return node if isinstance(node, OpNode) else None


def _reads_where(softmax: OpNode, graph: Graph) -> bool:
    (source,) = graph.inputs(softmax.name).values()
    node = graph[source.node]
    return isinstance(node, OpNode) and isinstance(node.op, Where)


def _find_offsets(bands: Bands, queries: int, keys: int) -> Interval:
    """The offsets from a query to the keys that some piece of bands allows."""
    sign = 1 if queries < keys else -1
    found: Interval | None = None
    for piece in bands.pieces:
        low, high = piece.get((min(queries, keys), max(queries, keys)), Interval(None, None))
        if sign < 0:
            low, high = (None if high is None else -high), (None if low is None else -low)
        here = Interval(low, high)
        found = here if found is None else found.join(here)
    return found or Interval(None, None)


def _format_offsets(offsets: Interval, keys: str) -> str:
    low, high = (None if each is None else int(each) for each in offsets)
    if low is None and high is None:
        return f'every place of "{keys}"'
    first = "the first" if low is None else _format_place(low)
    return f'places of "{keys}" from {first} to {"the last" if high is None else _format_place(high)}'


def _format_place(offset: int) -> str:
    return "its own" if offset == 0 else f"{abs(offset)} {'after' if offset > 0 else 'before'} it"
