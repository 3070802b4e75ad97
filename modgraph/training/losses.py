"""Edits of a graph's losses: which count, with which weight, and with which of their terms.

From a loss that sums over the modules of a pool, Σ_m v_m, `drop_frozen_terms` subtracts the terms of frozen modules
behind a `stop_gradient`. So the gradient is that of the whole sum, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from modgraph.declare import position_of
from modgraph.diagnostics import Diagnostic, did_you_mean
from modgraph.ir import Graph, LossNode, Node, OpNode, Part, Result, find_module_axes, weights_of
from modgraph.ir.analysis.comparisons import comparisons
from modgraph.ir.analysis.learnt import find_learnt_weights, with_losses
from modgraph.ir.rewrite import Built, Change, build_op, rewrite_graph
from modgraph.ops import Op
from modgraph.ops.along_axis import Mean, Sum
from modgraph.ops.arithmetic import Divide, Multiply, Subtract
from modgraph.ops.array import Constant
from modgraph.ops.situation import StopGradient
from modgraph.training.errors import UnknownLoss
from modgraph.types import Axis

PREFIX = "loss."
Step = tuple[str, Op, Sequence[Result]]  # the name of an op, the op and its operands


def find_losses(graph: Graph, patterns: Collection[str]) -> list[str]:
    """Return the losses of a graph whose names, with or without `loss.`, match a pattern with `*` for any letters."""
    names = {name: (name, name.removeprefix(PREFIX)) for name in graph.losses}
    return [name for name in names if any(fnmatchcase(each, by) for each in names[name] for by in patterns)]


def suggest_loss(graph: Graph, pattern: str) -> str:
    """Return a suggestion for a pattern that names no loss."""
    known = [loss.removeprefix(PREFIX) for loss in graph.losses]
    return did_you_mean(pattern, known, "its losses are called: {known}")


def find_unfit_losses(graph: Graph, weights: Mapping[str, float]) -> Iterator[tuple[str, Diagnostic]]:
    """Yield an error for each pattern that names no loss."""
    for pattern in weights:
        if not find_losses(graph, [pattern]):
            yield pattern, UnknownLoss(pattern=pattern, suggestion=suggest_loss(graph, pattern))


def weigh_losses(graph: Graph, weights: Mapping[str, float]) -> Graph:
    """Multiply losses by the weights of patterns that name them; of several patterns the last counts. For patterns
    without a loss see `find_unfit_losses`."""
    factors = {name: weight for pattern, weight in weights.items() for name in find_losses(graph, [pattern])}

    def multiply(loss: LossNode, value: Result) -> Iterator[Step]:
        name = f"{loss.name}.weighed"
        while name in graph:
            name += "_"
        yield name, Multiply(left=factors[loss.name], right=None), [value]

    return _insert_steps(graph, multiply, {name for name, factor in factors.items() if factor != 1})


def learnt_from(graph: Graph, losses: Collection[str], since: Mapping[str, int]) -> Graph:
    """Return a graph with some of its losses, without the terms of frozen modules. Cross-entropies ignore classes
    before `since`, by target."""
    masked = with_setting(graph, "since", {target: first for target, first in since.items() if first})
    return drop_frozen_terms(with_losses(masked, losses))


def with_setting(graph: Graph, setting: str, values: Mapping[str, Any]) -> Graph:
    """Replace a setting of the comparisons with some targets, where they have it."""
    settings = {
        each.node.name: {setting: values[each.target]}
        for each in comparisons(graph)
        if each.target in values and setting in each.node.op.settings()
    }

    def change(node: Node, part: Part) -> Node:
        if not isinstance(node, OpNode) or node.name not in settings:
            return node
        return replace(node, op=replace(node.op, **settings[node.name]))

    return rewrite_graph(graph, change) if settings else graph


def _insert_steps(
    graph: Graph,
    steps: Callable[[LossNode, Result], Iterator[Step]],
    names: Collection[str],
    dropped: Collection[str] = (),
) -> Graph:
    """Insert ops between losses and their values, the last of which gives the loss; remove other losses."""

    def change(node: Node, part: Part) -> Change:
        if node.name in dropped or not isinstance(node, LossNode) or node.name not in names:
            return None if node.name in dropped else node
        ((slot, value),) = part.graph.inputs(node.name).items()
        ops = [build_op(name, op, *operands, span=node.span) for name, op, operands in steps(node, value)]
        return Built((*ops, (node, {slot: Result(ops[-1][0].name)})))

    return rewrite_graph(graph, change) if names or dropped else graph


# ---------------------------------------------------------------- terms of frozen modules


ModuleSum = tuple[Result, Axis, int, Sequence[Op]]


def drop_frozen_terms(graph: Graph) -> Graph:
    """Remove losses that train no weight, and the terms of frozen modules from the others."""
    idle = [name for name, result in graph.losses.items() if not find_learnt_weights(graph, [result])]
    sums = {name: found for name, result in graph.losses.items() if (found := _module_sum(graph, result)) is not None}

    def subtract(loss: LossNode, total: Result) -> Iterator[Step]:
        at, (terms, axis, frozen, ops) = f"{loss.name}~", sums[loss.name]
        assert axis.size is not None
        places = tuple(float(place < frozen) for place in range(axis.size))
        yield f"{at}places", Constant(sizes=(axis.size,), names=(axis.name,), numbers=places, ids=None), [terms]
        yield f"{at}terms", Multiply(left=None, right=None), [terms, Result(f"{at}places")]
        before = Result(f"{at}terms")
        for number, op in enumerate(ops):
            yield f"{at}{number}", op, [before]
            before = Result(f"{at}{number}")
        yield f"{at}frozen", StopGradient(), [before]
        yield f"{at}learns", Subtract(left=None, right=None), [total, Result(f"{at}frozen")]

    return _insert_steps(graph, subtract, sums.keys(), idle)


def _module_sum(graph: Graph, loss: Result) -> ModuleSum | None:
    """Recognise a loss that is a sum or mean over modules, perhaps scaled, some of them frozen, where all weights that
    it trains belong to the others. Returns its terms, their axis of modules, the number of frozen modules at its
    beginning, and the ops from the terms to the loss."""
    ops: list[Op] = []
    node = graph[loss.node]
    while isinstance(node, OpNode) and isinstance(node.op, Multiply | Divide):
        left, right = (constant is not None for constant in node.op.constants)
        if left == right or (left and isinstance(node.op, Divide)):
            return None
        ops.insert(0, node.op)
        (source,) = graph.inputs(node.name).values()
        node = graph[source.node]
    if not (isinstance(node, OpNode) and isinstance(node.op, Sum | Mean)):
        return None
    (terms,) = graph.inputs(node.name).values()
    type_ = graph.type_of(terms)
    axis = type_.shape[position_of(node.op.axis, type_, node.op.name)]
    frozen = _frozen_along(graph, axis, terms)
    return (terms, axis, frozen, (node.op, *ops)) if frozen else None


def _frozen_along(graph: Graph, axis: Axis, terms: Result) -> int:
    """Return the number of frozen modules at the beginning of an axis, if all weights that the terms train belong to
    its modules, or lie along it; else 0."""
    axes, pools = find_module_axes(graph), [pool for pool in graph.pools().values() if pool.axis == axis]
    first = {f"{pool.name}.{key}.": at for pool in pools for at, key in enumerate(pool.keys)}
    frozen = {weight.name for weight in weights_of(graph) if weight.frozen}

    def place(weight: str) -> int:
        if weight in axes and axes[weight].name == axis.name:
            return axes[weight].old if weight in frozen else 0
        return next((at for prefix, at in first.items() if weight.startswith(prefix)), 0)

    return min(map(place, find_learnt_weights(graph, [terms])), default=0)
