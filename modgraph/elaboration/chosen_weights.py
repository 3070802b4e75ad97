"""Weights of a route that are zero beyond a choice, and the warning where an op ends that choice."""

from __future__ import annotations

from modgraph.diagnostics import Note, Span
from modgraph.elaboration import errors
from modgraph.elaboration.entities import Tensor
from modgraph.elaboration.messages import for_each_sender
from modgraph.elaboration.site import Site
from modgraph.elaboration.sparsity import Support, made_dense_by, support_of
from modgraph.ir import PoolNode
from modgraph.ops.along_axis import Softmax
from modgraph.ops.compared import Where
from modgraph.routers.chosen import Chosen, ChosenSenders
from modgraph.types import shapes_meet


def find_choice(
    weights: Tensor, value: Tensor, pool: PoolNode, span: Span, site: Site
) -> tuple[Tensor, Support] | None:
    """Weights for each sender and module, and the choice that they are zero beyond; of messages of a fixed size.

    Weights that are the same along axes of the senders are repeated there. Warns where an op ends a choice before it
    reaches the weights.
    """
    outer = value.type.shape[: len(value.type.shape) - len(pool.message.shape)]
    if pool.message.padded or pool.result.padded or pool.axis in outer:
        return None
    support, shape, remaining = support_of(weights.result, site.graph), weights.type.shape, iter(outer)
    if support is not None and shapes_meet(shape, (*outer, pool.axis)):
        return weights, support
    if support is not None and shape[-1:] == (pool.axis,) and all(axis in remaining for axis in shape[:-1]):
        repeated = for_each_sender(weights, 1, value, outer, span, site)
        support = support_of(repeated.result, site.graph) if isinstance(repeated, Tensor) else None
        return None if support is None else (repeated, support)
    lost = None if support is not None else made_dense_by(weights.result, site.graph, along=pool.axis)
    if lost is not None:
        way_out = "multiply by the choice again after it: weights * chosen"
        if isinstance(lost.op, Softmax | Where):
            way_out = "take the softmax over the chosen modules: (scores, chosen) -> masked_softmax"
        notes = (Note(text="its result weighs the modules here", span=span),)
        site.tell(errors.ChoiceLost(span=lost.span, notes=notes, op=lost.op.name, way_out=way_out))
    return None


def router_of(support: Support) -> tuple[type[Chosen], int | None]:
    """The router for weights that are zero beyond a choice, and how many it chooses, None for any number: modules for
    senders, or a known number of senders for modules."""
    axis, k = support.axis, support.bound.k
    size = k or (None if axis is None else axis.size)
    if support.bound.place == -2 and size is not None:
        return ChosenSenders, size
    return Chosen, k if support.bound.place == -1 else None
