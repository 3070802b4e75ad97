"""Edges as data, one edge after another: values at their ends, and what a node receives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.reference.call import Call, op
from tests.reference.values import Array, Axis, broadcast_over

ENDS = {"source": 0, "target": 1}


def _edges(call: Call) -> int:
    """The place of the edges among the operands."""
    return [each.dtype for each in call.takes].index("edge")


def _axis(call: Call, end: int) -> Axis:
    """The axis of nodes at an end."""
    return call.takes[_edges(call)].ends[end]


def _moved(call: Call, x: Array, name: str) -> Array:
    """A value with the axis of a name first."""
    return np.moveaxis(x, [axis.name for axis in call.takes[0].axes].index(name), 0)


def _received(call: Call, edges: Array) -> Iterator[tuple[int, list[int]]]:
    """Each node with the edges that it receives."""
    end = ENDS[call.setting("at", "target")]
    for node in range(_axis(call, end).length(call.lengths)):
        yield node, [number for number, edge in enumerate(edges) if edge[end] == node]


@op("at_source", "at_target")
def at_end(call: Call, x: Array, edges: Array) -> Array:
    end = ENDS[call.op.removeprefix("at_")]
    place = [axis.name for axis in call.takes[0].axes].index(_axis(call, end).name)
    return np.stack([np.take(x, edge[end], axis=place) for edge in edges], axis=place)


@op("degree")
def degree(call: Call, edges: Array, *nodes: Array) -> Array:
    return np.array([float(len(numbers)) for _, numbers in _received(call, edges)])


@op("edge_softmax")
def edge_softmax(call: Call, scores: Array, edges: Array, *nodes: Array) -> Array:
    link = call.takes[1].axes[0].name
    place = [axis.name for axis in call.takes[0].axes].index(link)
    found = np.moveaxis(scores, place, 0).copy()
    for _, numbers in _received(call, edges):
        if numbers:
            powers = np.exp(found[numbers] - found[numbers].max(axis=0))
            found[numbers] = powers / powers.sum(axis=0)
    return np.moveaxis(found, 0, place)


@op("aggregate")
def aggregate(call: Call, x: Array, edges: Array, *nodes: Array) -> Array:
    return _reduce(call, x, edges, None, call.setting("reduce", "sum"))


@op("send")
def send(call: Call, x: Array, edges: Array, weights: Array, *nodes: Array) -> Array:
    return _reduce(call, x, edges, weights, "sum")


def _reduce(call: Call, x: Array, edges: Array, weights: Array | None, how: str) -> Array:
    """Reduce the messages of each node along the axis that the result has in place of the edges."""
    end = ENDS[call.setting("at", "target")]
    link, target = call.takes[1].axes[0], _axis(call, end)
    names = [axis.name for axis in call.takes[0].axes]
    reads = link.name not in names
    own = names.index(_axis(call, 1 - end).name if reads else link.name)
    messages = np.stack([np.take(x, edge[1 - end], axis=own) for edge in edges], axis=own) if reads else x
    axes = [link if at == own else axis for at, axis in enumerate(call.takes[0].axes)]
    outer = [link if axis == target else axis for axis in call.gives[0].axes]
    messages = broadcast_over(messages, axes, outer)
    if weights is not None:
        messages = messages * broadcast_over(weights, call.takes[2].axes, outer)
    place = outer.index(link)
    rows = np.moveaxis(messages, place, 0)
    reduce: Any = {"sum": np.sum, "mean": np.mean, "max": np.max}[how]
    nothing = np.zeros(rows.shape[1:])
    found = [reduce(rows[numbers], axis=0) if numbers else nothing for _, numbers in _received(call, edges)]
    return np.moveaxis(np.stack(found), 0, place)
