"""The losses that a phase reports: without the terms of frozen modules, which give no gradient.

From a loss that sums over the modules of a pool, Σ_m v_m, this subtracts the terms of the frozen ones behind a
`stop_gradient`. So the gradient is that of the whole sum, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from modgraph.declare import position_of
from modgraph.ir import (
    Change,
    Expanded,
    Graph,
    LossNode,
    Node,
    OpNode,
    Part,
    Result,
    learnt_weights,
    module_axes,
    rewritten,
    weights_of,
)
from modgraph.ops import Op
from modgraph.ops.along_axis import Mean, Sum
from modgraph.ops.arithmetic import Arithmetic, Divide, Multiply, Subtract
from modgraph.ops.array import Constant
from modgraph.ops.situation import StopGradient
from modgraph.types import Axis


@dataclass(frozen=True)
class ModuleSum:
    """A loss that is a sum or a mean over modules, perhaps times numbers: its terms, their axis of modules, how many
    modules at its beginning are frozen, and the ops from the terms to the loss, in order."""

    terms: Result
    axis: Axis
    frozen: int
    ops: tuple[Op, ...]


def drop_frozen_terms(graph: Graph) -> Graph:
    """The graph without losses that train no weight, and without the terms of frozen modules in the others."""
    sums = {name: found for name, result in graph.losses.items() if (found := _module_sum(graph, result)) is not None}

    def changed(node: Node, part: Part) -> Change:
        if not isinstance(node, LossNode):
            return node
        if not learnt_weights(graph, [graph.losses[node.name]]):
            return None
        return Expanded(partial(_subtract_frozen, node, sums[node.name])) if node.name in sums else node

    return rewritten(graph, changed)


def _module_sum(graph: Graph, loss: Result) -> ModuleSum | None:
    """A loss as a sum over modules, where some are frozen and all weights that it trains belong to the others; else
    None."""
    ops: list[Op] = []
    node = graph[loss.node]
    while isinstance(node, OpNode) and _scales(node.op):
        ops.append(node.op)
        (source,) = graph.inputs(node.name).values()
        node = graph[source.node]
    if not (isinstance(node, OpNode) and isinstance(node.op, Sum | Mean)):
        return None
    (terms,) = graph.inputs(node.name).values()
    type_ = graph.type_of(terms)
    axis = type_.shape[position_of(node.op.axis, type_, node.op.name)]
    frozen = _frozen_along(graph, axis, terms)
    return ModuleSum(terms, axis, frozen, (node.op, *reversed(ops))) if frozen else None


def _scales(op: Op) -> bool:
    """Whether an op multiplies one value by a number."""
    if not isinstance(op, Arithmetic):
        return False
    left, right = op.constants
    if isinstance(op, Divide):
        return left is None and right is not None
    return isinstance(op, Multiply) and (left is None) != (right is None)


def _frozen_along(graph: Graph, axis: Axis, terms: Result) -> int:
    """How many modules at the beginning of an axis are frozen, where all weights that the terms train are those of its
    modules, or lie along it; else 0."""
    axes = module_axes(graph)
    first = {
        f"{pool.name}.{at}.": at for pool in graph.pools().values() if pool.axis == axis for at in range(pool.size)
    }
    frozen = {weight.name for weight in weights_of(graph) if weight.frozen}

    def place(weight: str) -> int:
        if weight in axes and axes[weight].name == axis.name:
            return axes[weight].old if weight in frozen else 0
        return next((at for prefix, at in first.items() if weight.startswith(prefix)), 0)

    return min(map(place, learnt_weights(graph, [terms])), default=0)


def _subtract_frozen(
    loss: LossNode, of: ModuleSum, graph: Graph, inputs: Mapping[str, Result], lengths: Mapping[str, Result]
) -> tuple[Result, ...]:
    """A loss minus its frozen terms, through which no gradient flows."""
    ((slot, total),) = inputs.items()
    for node, sources in _nodes(f"{loss.name}~", of, total):
        graph.add(node, sources)
        graph.replace(replace(node, types=graph.signature(node).results))
    graph.add(loss, {slot: Result(f"{loss.name}~learns")}, lengths=lengths)
    return (Result(loss.name),)


def _nodes(at: str, of: ModuleSum, total: Result) -> Iterator[tuple[OpNode, Mapping[str, Result]]]:
    """The ops that compute the frozen terms and subtract them, with their operands."""
    assert of.axis.size is not None
    places = tuple(float(place < of.frozen) for place in range(of.axis.size))
    mask = Constant(sizes=(of.axis.size,), names=(of.axis.name,), numbers=places)
    yield _op_node(f"{at}places", mask, of.terms)
    yield _op_node(f"{at}terms", Multiply(left=None, right=None), of.terms, Result(f"{at}places"))
    source = Result(f"{at}terms")
    for number, op in enumerate(of.ops):
        yield _op_node(f"{at}{number}", op, source)
        source = Result(f"{at}{number}")
    yield _op_node(f"{at}frozen", StopGradient(), source)
    yield _op_node(f"{at}learns", Subtract(left=None, right=None), total, Result(f"{at}frozen"))


def _op_node(name: str, op: Op, *sources: Result) -> tuple[OpNode, Mapping[str, Result]]:
    return OpNode(name=name, owner=name, op=op), dict(zip(op.slots_of(len(sources)), sources, strict=True))
