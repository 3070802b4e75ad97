"""Applies what stands right of an arrow: ops, templates, modules, and pools by a router."""

from __future__ import annotations

from typing import Any

from modgraph.diagnostics import Note, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.blocks import apply_block, use_block
from modgraph.elaboration.calls import arguments_of, settle
from modgraph.elaboration.context import OPERAND, Site
from modgraph.elaboration.entities import (
    POISON,
    BlockEntity,
    BlockUse,
    ModuleEntity,
    OpUse,
    Poison,
    PoolEntity,
    RouterEntity,
    Template,
    Tensor,
    TensorTuple,
    described,
)
from modgraph.elaboration.routes import apply_every_module, apply_route
from modgraph.elaboration.scope import is_callable
from modgraph.ir import OpNode, Result
from modgraph.ops import Op
from modgraph.syntax import ast
from modgraph.types import Misfit
from modgraph.vocabulary import find_op


def apply_stages(value: Any, stages: tuple[ast.Stage, ...], site: Site) -> Any:
    """A value sent through a pipeline, stage after stage."""
    for stage in stages:
        value = _apply_stage(value, stage, site)
        site.context.observe(stage.span, value)
    return value


def _apply_stage(value: Any, stage: ast.Stage, site: Site) -> Any:
    term = callable_of(stage.term, site)
    router = _router_of(stage, site)
    if isinstance(value, Poison) or isinstance(term, Poison) or isinstance(router, Poison):
        return POISON
    tensors = value.tensors if isinstance(value, TensorTuple) else (value,)
    if isinstance(term, PoolEntity):
        return _apply_pool(term, router, tensors, stage, site)
    if router is not None:
        found = f"this is {described(term)}"
        site.tell(errors.WrongKind(span=stage.term.span, needed="a pool", found=found))
        return POISON
    return apply(term, tensors, stage.span, site)


def apply(term: Any, tensors: tuple[Tensor, ...], span: Any, site: Site) -> Any:
    """An op, a template or a module applied to values."""
    match term:
        case OpUse():
            return apply_op(term, tensors, span, site)
        case BlockUse():
            return apply_block(term, tensors, span, site)
        case Template():
            value = tensors[0] if len(tensors) == 1 else TensorTuple(tensors)
            return apply_stages(value, term.stages, site.within(term.scope))
        case ModuleEntity():
            return _apply_module(term, tensors, span, site)
        case _:
            raise AssertionError(f"not callable: {term}")


def _apply_module(module: ModuleEntity, tensors: tuple[Tensor, ...], span: Any, site: Site) -> Any:
    """A named instance: its nodes stand below this statement, its weights below the module."""
    site.context.used.add(module.path)
    if site.region:
        advice = "write the ops in the pool, where each module has weights of its own"
        site.tell(errors.NotInRegion(span=span, what=f'the shared module "{module.path}"', way_out=advice))
        return POISON
    site.context.enter(span)
    inside = site.under(site.naming.module(module.path, module.frozen))
    result = apply(module.template, tensors, span, inside)
    site.context.leave()
    return result


def apply_op(bound: OpUse, tensors: tuple[Tensor, ...], span: Any, site: Site) -> Any:
    """Add an op node; its results, or poison where the types do not fit."""
    op = bound.op
    site.context.spend(OPERAND * len(tensors), span)
    try:
        signature = op.bind(*(tensor.type for tensor in tensors))
        shapes = signature.weight_shapes()
    except Misfit as misfit:
        notes = origins(tensors, misfit.operand)
        site.tell(errors.DoesNotFit(span=span, notes=notes, who=op.name, reason=misfit.reason, way_out=misfit.help))
        return POISON
    site.context.spend(2 * len(signature.results), span)
    name, owner = site.naming.next(op.name, bound.label)
    if shapes and not site.agree_on_weights(owner, shapes, span):
        return POISON
    site.context.count_weights(len(shapes), span)
    if shapes and site.naming.shifting is not None and bound.label is None:
        site.tell(errors.NamesWouldShift(span=span, name=site.naming.shifting))
    slots = _slots(op, len(tensors))
    inputs = {slot: tensor.result for slot, tensor in zip(slots, tensors, strict=True)}
    if (axis := op.masked(signature.axes)) is not None:
        inputs["length"] = site.length_of(axis, span)
    node = OpNode(
        name=name,
        types=signature.results,
        span=span,
        op=op,
        owner=owner,
        initial=bound.initial,
        frozen=site.scope.frozen,
    )
    if not site.add(node, span, inputs):
        return POISON
    results = tuple(Tensor(Result(name, at), type_, span) for at, type_ in enumerate(signature.results))
    return results[0] if len(results) == 1 else TensorTuple(results)


def origins(tensors: tuple[Tensor, ...], culprit: int | None) -> tuple[Note, ...]:
    """Where operands that do not fit came from: the culprit if one is known, or all."""
    chosen = tensors if culprit is None else tensors[culprit : culprit + 1]
    return tuple(Note(text=f"{tensor.type} comes from here", span=tensor.span) for tensor in chosen if tensor.span)


def _slots(op: Op, count: int) -> list[str]:
    if op.variadic:
        return [str(at) for at in range(count)]
    names = [operand.name for operand in op.operands]
    return names if len(names) == count else ["left", "right"][:count]


def callable_of(term: ast.Expression, site: Site) -> Any:
    """What a term right of an arrow stands for."""
    match term:
        case ast.Name():
            return _named(term, site)
        case ast.Call(callee=ast.Name() as callee):
            block = site.scope.find(callee.name, is_block)
            if isinstance(block, BlockEntity):
                return use_block(block, arguments_of(term, site), site, term.span)
            op = find_op(callee.name)
            if op is None:
                _tell_unknown(callee, site)
                return POISON
            return settle(op, arguments_of(term, site), site, term.span)
        case _:
            from modgraph.elaboration.expressions import evaluate

            value = evaluate(term, site)
            if is_callable(value) or isinstance(value, Poison):
                return value
            found = f"this is {described(value)}"
            site.tell(errors.WrongKind(span=term.span, needed="an op, a module or a pool", found=found))
            return POISON


def _named(term: ast.Name, site: Site) -> Any:
    found = site.scope.find(term.name, is_callable)
    if isinstance(found, BlockEntity):
        return use_block(found, [], site, term.span)
    if found is not None:
        return found
    op = find_op(term.name)
    if op is None:
        _tell_unknown(term, site)
        return POISON
    return settle(op, [], site, term.span)


def is_block(value: Any) -> bool:
    return isinstance(value, BlockEntity)


def _tell_unknown(term: ast.Name, site: Site) -> None:
    other = site.scope.find(term.name)
    if isinstance(other, Poison):
        return
    if other is not None:
        found = f'"{term.name}" is {described(other)}'
        site.tell(errors.WrongKind(span=term.span, needed="an op, a module or a pool", found=found))
        return
    known = [*Op.registry, *site.visible(term.span, is_callable)]
    site.tell(errors.UnknownOp(span=term.span, name=term.name, suggestion=did_you_mean(term.name, known)))


def _router_of(stage: ast.Stage, site: Site) -> Any:
    """The router of `pool by router`, or `by router(operands…)`: with it, its extra operands."""
    if stage.router is None:
        return None
    from modgraph.elaboration.expressions import evaluate, tensor

    router = evaluate(stage.router.callee if isinstance(stage.router, ast.Call) else stage.router, site)
    arguments = stage.router.arguments if isinstance(stage.router, ast.Call) else ()
    others = tuple(tensor(argument.value, site, "an operand of a router") for argument in arguments)
    if POISON in others:
        return POISON
    if not isinstance(router, RouterEntity | Poison):
        found = f"this is {described(router)}"
        site.tell(
            errors.WrongKind(
                span=stage.router.span, needed="a router", found=found, way_out="declare it: router NAME = …"
            )
        )
        return POISON
    return router if isinstance(router, Poison) else (router, others)


def _apply_pool(pool: PoolEntity, router: Any, tensors: tuple[Tensor, ...], stage: ast.Stage, site: Site) -> Any:
    if len(tensors) != 1:
        reason = f"it routes one value, not {len(tensors)}"
        site.tell(errors.DoesNotFit(span=stage.span, who=f'pool "{pool.path}"', reason=reason))
        return POISON
    if site.region:
        site.tell(errors.NotInRegion(span=stage.span, what=f'the pool "{pool.path}"'))
        return POISON
    if router is None:
        return apply_every_module(pool, tensors[0], stage.span, site)
    chosen, others = router
    return apply_route(pool, chosen, others, tensors[0], stage.span, site)
