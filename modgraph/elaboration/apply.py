"""Applies what stands right of an arrow: ops, templates, modules, and pools by a router."""

from __future__ import annotations

from typing import Any

from modgraph.diagnostics import Note, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.blocks import apply_block, use_block
from modgraph.elaboration.calls import arguments_of, settle
from modgraph.elaboration.context import OPERAND, Here
from modgraph.elaboration.entities import (
    POISON,
    BlockEntity,
    BlockUse,
    Bound,
    ModuleEntity,
    Poison,
    PoolEntity,
    RouterEntity,
    Several,
    Template,
    Tensor,
    described,
)
from modgraph.elaboration.routes import apply_every_module, apply_route
from modgraph.elaboration.scope import is_callable
from modgraph.ir import OpNode, Result
from modgraph.ops import Op
from modgraph.syntax import ast
from modgraph.types import Misfit
from modgraph.vocabulary import find_op


def apply_stages(value: Any, stages: tuple[ast.Stage, ...], here: Here) -> Any:
    """A value sent through a pipeline, stage after stage."""
    for stage in stages:
        value = _apply_stage(value, stage, here)
        here.context.observe(stage.span, value)
    return value


def _apply_stage(value: Any, stage: ast.Stage, here: Here) -> Any:
    term = callable_of(stage.term, here)
    router = _router_of(stage, here)
    if isinstance(value, Poison) or isinstance(term, Poison) or isinstance(router, Poison):
        return POISON
    tensors = value.tensors if isinstance(value, Several) else (value,)
    if isinstance(term, PoolEntity):
        return _apply_pool(term, router, tensors, stage, here)
    if router is not None:
        found = f"this is {described(term)}"
        here.tell(errors.WrongKind(span=stage.term.span, needed="a pool", found=found))
        return POISON
    return apply(term, tensors, stage.span, here)


def apply(term: Any, tensors: tuple[Tensor, ...], span: Any, here: Here) -> Any:
    """An op, a template or a module applied to values."""
    match term:
        case Bound():
            return apply_op(term, tensors, span, here)
        case BlockUse():
            return apply_block(term, tensors, span, here)
        case Template():
            value = tensors[0] if len(tensors) == 1 else Several(tensors)
            return apply_stages(value, term.stages, here.within(term.scope))
        case ModuleEntity():
            return _apply_module(term, tensors, span, here)
        case _:
            raise AssertionError(f"not callable: {term}")


def _apply_module(module: ModuleEntity, tensors: tuple[Tensor, ...], span: Any, here: Here) -> Any:
    """A named instance: its nodes stand below this statement, its weights below the module."""
    here.context.used.add(module.path)
    if here.region:
        advice = "write the ops in the pool, where each module has weights of its own"
        here.tell(errors.NotInRegion(span=span, what=f'the shared module "{module.path}"', way_out=advice))
        return POISON
    here.context.enter(span)
    inside = here.under(here.naming.module(module.path, module.frozen))
    result = apply(module.template, tensors, span, inside)
    here.context.leave()
    return result


def apply_op(bound: Bound, tensors: tuple[Tensor, ...], span: Any, here: Here) -> Any:
    """Add an op node; its results, or poison where the types do not fit."""
    op = bound.op
    here.context.spend(OPERAND * len(tensors), span)
    try:
        signature = op.bind(*(tensor.type for tensor in tensors))
        shapes = signature.weight_shapes()
    except Misfit as misfit:
        notes = origins(tensors, misfit.operand)
        here.tell(errors.DoesNotFit(span=span, notes=notes, who=op.name, reason=misfit.reason, way_out=misfit.help))
        return POISON
    here.context.spend(2 * len(signature.results), span)
    name, owner = here.naming.next(op.name, bound.label)
    if shapes and not here.agree_on_weights(owner, shapes, span):
        return POISON
    here.context.count_weights(len(shapes), span)
    if shapes and here.naming.shifting is not None and bound.label is None:
        here.tell(errors.NamesWouldShift(span=span, name=here.naming.shifting))
    slots = _slots(op, len(tensors))
    inputs = {slot: tensor.result for slot, tensor in zip(slots, tensors, strict=True)}
    if (axis := op.masked(signature.axes)) is not None:
        inputs["length"] = here.length_of(axis, span)
    node = OpNode(
        name=name,
        types=signature.results,
        span=span,
        op=op,
        owner=owner,
        initial=bound.initial,
        frozen=here.scope.frozen,
    )
    if not here.add(node, span, inputs):
        return POISON
    results = tuple(Tensor(Result(name, at), type_, span) for at, type_ in enumerate(signature.results))
    return results[0] if len(results) == 1 else Several(results)


def origins(tensors: tuple[Tensor, ...], culprit: int | None) -> tuple[Note, ...]:
    """Where operands that do not fit came from: the culprit if one is known, or all."""
    chosen = tensors if culprit is None else tensors[culprit : culprit + 1]
    return tuple(Note(text=f"{tensor.type} comes from here", span=tensor.span) for tensor in chosen if tensor.span)


def _slots(op: Op, count: int) -> list[str]:
    if op.variadic:
        return [str(at) for at in range(count)]
    names = [operand.name for operand in op.operands]
    return names if len(names) == count else ["left", "right"][:count]


def callable_of(term: ast.Expression, here: Here) -> Any:
    """What a term right of an arrow stands for."""
    match term:
        case ast.Name():
            return _named(term, here)
        case ast.Call(callee=ast.Name() as callee):
            block = here.scope.find(callee.name, is_block)
            if isinstance(block, BlockEntity):
                return use_block(block, arguments_of(term, here), here, term.span)
            op = find_op(callee.name)
            if op is None:
                _tell_unknown(callee, here)
                return POISON
            return settle(op, arguments_of(term, here), here, term.span)
        case _:
            from modgraph.elaboration.expressions import evaluate

            value = evaluate(term, here)
            if is_callable(value) or isinstance(value, Poison):
                return value
            found = f"this is {described(value)}"
            here.tell(errors.WrongKind(span=term.span, needed="an op, a module or a pool", found=found))
            return POISON


def _named(term: ast.Name, here: Here) -> Any:
    found = here.scope.find(term.name, is_callable)
    if isinstance(found, BlockEntity):
        return use_block(found, [], here, term.span)
    if found is not None:
        return found
    op = find_op(term.name)
    if op is None:
        _tell_unknown(term, here)
        return POISON
    return settle(op, [], here, term.span)


def is_block(value: Any) -> bool:
    return isinstance(value, BlockEntity)


def _tell_unknown(term: ast.Name, here: Here) -> None:
    other = here.scope.find(term.name)
    if isinstance(other, Poison):
        return
    if other is not None:
        found = f'"{term.name}" is {described(other)}'
        here.tell(errors.WrongKind(span=term.span, needed="an op, a module or a pool", found=found))
        return
    known = [*Op.registry, *here.visible(term.span, is_callable)]
    here.tell(errors.UnknownOp(span=term.span, name=term.name, suggestion=did_you_mean(term.name, known)))


def _router_of(stage: ast.Stage, here: Here) -> Any:
    """The router of `pool by router`, or `by router(operands…)`: with it, its extra operands."""
    if stage.router is None:
        return None
    from modgraph.elaboration.expressions import evaluate, tensor

    router = evaluate(stage.router.callee if isinstance(stage.router, ast.Call) else stage.router, here)
    arguments = stage.router.arguments if isinstance(stage.router, ast.Call) else ()
    others = tuple(tensor(argument.value, here, "an operand of a router") for argument in arguments)
    if POISON in others:
        return POISON
    if not isinstance(router, RouterEntity | Poison):
        found = f"this is {described(router)}"
        here.tell(
            errors.WrongKind(
                span=stage.router.span, needed="a router", found=found, way_out="declare it: router NAME = …"
            )
        )
        return POISON
    return router if isinstance(router, Poison) else (router, others)


def _apply_pool(pool: PoolEntity, router: Any, tensors: tuple[Tensor, ...], stage: ast.Stage, here: Here) -> Any:
    if len(tensors) != 1:
        reason = f"it routes one value, not {len(tensors)}"
        here.tell(errors.DoesNotFit(span=stage.span, who=f'pool "{pool.path}"', reason=reason))
        return POISON
    if here.region:
        here.tell(errors.NotInRegion(span=stage.span, what=f'the pool "{pool.path}"'))
        return POISON
    if router is None:
        return apply_every_module(pool, tensors[0], stage.span, here)
    chosen, others = router
    return apply_route(pool, chosen, others, tensors[0], stage.span, here)
