"""Finds the choice behind the weights of a route, and the router that runs only what it chooses."""

from __future__ import annotations

from math import prod

from modgraph.diagnostics import Note, Span
from modgraph.elaboration import errors
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, OpUse, Poison, Tensor
from modgraph.elaboration.messages import broadcast_to_tokens
from modgraph.elaboration.sparsity import Support, find_choice_end, find_support
from modgraph.ir import PoolNode
from modgraph.ops.along_axis import Softmax
from modgraph.ops.axes import NewAxis
from modgraph.ops.compared import Where
from modgraph.routers.choice import ExpertChoice, TokenChoice
from modgraph.types import shapes_meet


def find_choice(
    weights: Tensor, value: Tensor, pool: PoolNode, span: Span, elaborator: Elaborator
) -> tuple[Tensor, Support] | None:
    """Find the choice behind weights, and return both with a weight for each token and module.

    Messages must have a fixed size. Weights that lack token axes are broadcast. Warns of an op that ends a choice
    before it reaches the weights.
    """
    outer = value.type.shape[: len(value.type.shape) - len(pool.message.shape)]
    if pool.message.padded or pool.result.padded or pool.axis in outer:
        return None
    support, shape, remaining = find_support(weights.result, elaborator.graph), weights.type.shape, iter(outer)
    if support is not None and shapes_meet(shape, (*outer, pool.axis)):
        return weights, support
    if support is not None and shape[-1:] == (pool.axis,) and all(axis in remaining for axis in shape[:-1]):
        repeated = broadcast_to_tokens(weights, 1, value, outer, span, elaborator)
        support = find_support(repeated.result, elaborator.graph) if isinstance(repeated, Tensor) else None
        return None if support is None else (repeated, support)
    lost = None if support is not None else find_choice_end(weights.result, elaborator.graph, along=pool.axis)
    if lost is not None:
        way_out = "multiply by the choice again after it: weights * chosen"
        if isinstance(lost.op, Softmax | Where):
            way_out = "take the softmax over the chosen modules: (scores, chosen) -> masked_softmax"
        notes = (Note(text="its result weights the modules here", span=span),)
        elaborator.report(errors.ChoiceLost(span=lost.span, notes=notes, op=lost.op.name, way_out=way_out))
    return None


def repeat_for_slots(
    value: Tensor, weights: Tensor, pool: PoolNode, span: Span, elaborator: Elaborator
) -> Tensor | Poison:
    """Repeat a value along the slots of weights [tokens, slots, modules], where each slot chooses modules.

    Returns the value itself where the slots choose as many modules as there are, have no fixed number, or pass
    gradients to all modules.
    """
    rank, shape = len(pool.message.shape), weights.type.shape
    outer = value.type.shape[: len(value.type.shape) - rank]
    slots = shape[len(outer) : -1]
    count = prod(axis.size or pool.size for axis in slots)
    if not slots or shape != (*outer, *slots, pool.axis) or pool.message.padded or pool.result.padded:
        return value
    support = find_support(weights.result, elaborator.graph)
    if support is None or support.straight or support.bound.place != -1:
        return value
    if (support.bound.k or pool.size) * count >= pool.size:
        return value
    for axis in slots:
        op = OpUse(NewAxis(length=axis.size or 1, axis=axis.name, at=-rank - 1))
        repeated = apply_op(op, (value,), span, elaborator)
        if not isinstance(repeated, Tensor):
            return POISON
        value = repeated
    return value


def choose_router(support: Support) -> tuple[type[TokenChoice], int | None]:
    """Return the router for weights with a choice, and how many it chooses, None for any number.

    It chooses modules for a token, or a fixed number of tokens for a module.
    """
    axis, k = support.axis, support.bound.k
    size = k or (None if axis is None else axis.size)
    if support.bound.place == -2 and size is not None:
        return ExpertChoice, size
    return TokenChoice, k if support.bound.place == -1 else None
