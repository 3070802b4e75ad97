"""Applies ops and modules to values: nodes of the graph."""

from __future__ import annotations

from typing import Any

from modgraph.elaboration import errors
from modgraph.elaboration.context import OPERAND
from modgraph.elaboration.entities import POISON, ModuleEntity, OpUse, Tensor, TensorTuple, origins
from modgraph.elaboration.site import Site
from modgraph.ir import OpNode, Result
from modgraph.ops.arithmetic import ARITHMETIC
from modgraph.types import Misfit

ADD: Any = ARITHMETIC["+"]
MULTIPLY: Any = ARITHMETIC["*"]


def apply_module(module: ModuleEntity, tensors: tuple[Tensor, ...], span: Any, site: Site) -> Any:
    """A named instance: its nodes stand below this statement, its weights below the module."""
    if not site.is_own(module, span):
        return POISON
    naming = site.naming.module(module.word, module.path, module.frozen)
    site.context.shorter[naming.node] = site.naming.shorter(naming.node)
    with site.context.using("module", module.word, naming, span):
        return site.under(naming).within(naming.scope).apply(module.template, tensors, span)


def apply_op(bound: OpUse, tensors: tuple[Tensor, ...], span: Any, site: Site) -> Any:
    """Add an op node; its results, or poison where the types do not fit."""
    op = bound.op
    site.context.spend(OPERAND * len(tensors), span)
    try:
        signature = site.context.signature(op, tuple([tensor.type for tensor in tensors]))
        shapes = signature.weight_shapes()
    except Misfit as misfit:
        notes = origins(tensors, misfit.operand)
        site.tell(errors.DoesNotFit(span=span, notes=notes, who=op.name, reason=misfit.reason, way_out=misfit.help))
        return POISON
    site.context.spend(2 * len(signature.results), span)
    name, owner = site.naming.next(op.name, bound.label)
    if not site.has_name_of_its_own(owner, span) or (shapes and not site.agree_on_weights(owner, shapes, span)):
        return POISON
    site.context.count_weights(len(shapes), span)
    if shapes and site.naming.shifting is not None and bound.label is None:
        site.tell(errors.NamesWouldShift(span=span, name=site.naming.shifting))
    slots = op.slots_of(len(tensors))
    inputs = {slot: tensor.result for slot, tensor in zip(slots, tensors, strict=True)}
    node = OpNode(
        name=name,
        types=signature.results,
        span=span,
        op=op,
        owner=owner,
        initial=bound.initial,
        frozen=site.scope.frozen,
        within=site.context.call,
    )
    if not site.add(node, span, inputs, padded=signature.padded()):
        return POISON
    results = tuple([Tensor(Result(name, at), type_, span) for at, type_ in enumerate(signature.results)])
    return results[0] if len(results) == 1 else TensorTuple(results)
