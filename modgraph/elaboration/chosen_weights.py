"""Weights of a route that are zero beyond a choice, and the warning where an op ends that choice."""

from __future__ import annotations

from dataclasses import dataclass

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
from modgraph.types import Shape, shapes_meet


@dataclass(frozen=True)
class ChosenWeights:
    """Weights for each sender and module that are zero beyond a choice of modules or of senders."""

    weights: Tensor
    support: Support

    @property
    def _size(self) -> int | None:
        """The largest number of places chosen along the axis of the choice, where it is known."""
        axis = self.support.axis
        return self.support.bound.k or (None if axis is None else axis.size)

    @property
    def router(self) -> type[Chosen]:
        """The router for these weights: it chooses modules for senders, or a known number of senders for modules."""
        return ChosenSenders if self.support.bound.place == -2 and self._size is not None else Chosen

    @property
    def k(self) -> int | None:
        """How many it chooses; None for any number of modules."""
        if self.router is ChosenSenders:
            return self._size
        return self.support.bound.k if self.support.bound.place == -1 else None


def find_choice(weights: Tensor, value: Tensor, pool: PoolNode, span: Span, site: Site) -> ChosenWeights | None:
    """A choice that weights over a pool's modules are zero beyond; of messages of a fixed size.

    Weights that are the same along axes of the senders are repeated there. Warns where an op ends a choice before it
    reaches the weights.
    """
    outer = value.type.shape[: len(value.type.shape) - len(pool.message.shape)]
    if pool.message.padded or pool.result.padded or pool.axis in outer:
        return None
    support = support_of(weights.result, site.graph)
    if support is None:
        _warn_lost(weights, pool, span, site)
        return None
    if shapes_meet(weights.type.shape, (*outer, pool.axis)):
        return ChosenWeights(weights, support)
    if not _lacks_senders(weights.type.shape, (*outer, pool.axis)):
        return None
    repeated = for_each_sender(weights, 1, value, outer, span, site)
    support = support_of(repeated.result, site.graph) if isinstance(repeated, Tensor) else None
    return None if support is None else ChosenWeights(repeated, support)


def _lacks_senders(shape: Shape, whole: Shape) -> bool:
    """Whether a shape has the last axis of `whole` and lacks at most some of the others, in their order."""
    remaining = iter(whole[:-1])
    return shape[-1:] == whole[-1:] and all(axis in remaining for axis in shape[:-1])


def _warn_lost(weights: Tensor, pool: PoolNode, span: Span, site: Site) -> None:
    """Warn of an op between a choice of modules and the weights of a route whose result is not zero where it was."""
    lost = made_dense_by(weights.result, site.graph, along=pool.axis)
    if lost is not None:
        way_out = "multiply by the choice again after it: weights * chosen"
        if isinstance(lost.op, Softmax | Where):
            way_out = "take the softmax over the chosen modules: (scores, chosen) -> masked_softmax"
        notes = (Note(text="its result weighs the modules here", span=span),)
        site.tell(errors.ChoiceLost(span=lost.span, notes=notes, op=lost.op.name, way_out=way_out))
