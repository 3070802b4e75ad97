"""Pipelines: values sent from stage to stage, or, without a value at the head, something to be applied later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.apply import ADD, MULTIPLY, apply_op
from modgraph.elaboration.entities import (
    POISON,
    Family,
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
from modgraph.elaboration.site import Site
from modgraph.ops.along_axis import Mean, Sum
from modgraph.ops.shape import Stack
from modgraph.syntax import ast
from modgraph.vocabulary import find_router


def evaluate_pipeline(expression: ast.Pipeline, site: Site) -> Any:
    head = site.evaluate(expression.head)
    match head:
        case Template():
            return Template((*head.stages, *expression.stages), site.scope)
        case ModuleEntity():
            first = ast.Stage(span=expression.head.span, term=expression.head)
            return Template((first, *expression.stages), site.scope)
        case Tensor() | TensorTuple() | Poison():
            return apply_stages(head, expression.stages, site)
        case Family() if head.of_values:
            return apply_stages(head, expression.stages, site)
        case _:
            site.tell(errors.NotValue(span=expression.head.span, what="the head of a pipeline", found=described(head)))
            return apply_stages(POISON, expression.stages, site)


def apply_stages(value: Any, stages: tuple[ast.Stage, ...], site: Site) -> Any:
    """A value sent through a pipeline, stage after stage."""
    for stage in stages:
        value = _apply_stage(value, stage, site)
        site.context.observe(stage.span, value)
    return value


def apply_template(template: Template, tensors: tuple[Tensor, ...], span: Span, site: Site) -> Any:
    value = tensors[0] if len(tensors) == 1 else TensorTuple(tensors)
    return apply_stages(value, template.stages, site.within(template.scope))


def _apply_stage(value: Any, stage: ast.Stage, site: Site) -> Any:
    term = site.callable(stage.term)
    router = _router_of(stage, site)
    if isinstance(value, Poison) or isinstance(term, Poison) or isinstance(router, Poison):
        return POISON
    if isinstance(value, Family):
        return _apply_to_family(term, router, value, stage, site)
    tensors = value.tensors if isinstance(value, TensorTuple) else (value,)
    return _apply_to_tensors(term, router, tensors, stage, site)


def _apply_to_family(term: Any, router: Any, family: Family, stage: ast.Stage, site: Site) -> Any:
    """Mean and sum run over the members of a family, stack gives them an axis called after it; other ops take all."""
    members = tuple(family.members.values())
    match term:
        case OpUse(op=Mean() | Sum() as op) if not op.values():
            total = _sum_of(members, stage.span, site)
            if isinstance(op, Sum) or isinstance(total, Poison):
                return total
            return apply_op(OpUse(MULTIPLY(left=1 / len(members))), (total,), stage.span, site)
        case OpUse(op=Stack(axis="")):
            return site.apply(replace(term, op=Stack(axis=family.name)), members, stage.span)
        case _:
            return _apply_to_tensors(term, router, members, stage, site)


def _sum_of(members: tuple[Tensor, ...], span: Span, site: Site) -> Any:
    total: Any = members[0]
    for member in members[1:]:
        if not isinstance(total, Poison):
            total = apply_op(OpUse(ADD()), (total, member), span, site)
    return total


def _apply_to_tensors(term: Any, router: Any, tensors: tuple[Tensor, ...], stage: ast.Stage, site: Site) -> Any:
    if isinstance(term, PoolEntity):
        return _apply_pool(term, router, tensors, stage, site)
    if router is not None:
        found = f"this is {described(term)}"
        site.tell(errors.WrongKind(span=stage.term.span, needed="a pool", found=found))
        return POISON
    return site.apply(term, tensors, stage.span)


def _router_of(stage: ast.Stage, site: Site) -> Any:
    """The router of `pool by router`, or `by router(operands…)`: with it, its extra operands."""
    if stage.router is None:
        return None
    called = stage.router.callee if isinstance(stage.router, ast.Call) else stage.router
    arguments = stage.router.arguments if isinstance(stage.router, ast.Call) else ()
    if isinstance(called, ast.Name) and site.scope.find(called.name) is None:
        _tell_no_router(called, site)
        return POISON
    router = site.evaluate(called)
    others = tuple(site.tensor(argument.value, "an operand of a router") for argument in arguments)
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


def _tell_no_router(called: ast.Name, site: Site) -> None:
    """Of a name behind `by` that stands for nothing here, or for a kind of router."""
    if find_router(called.name) is None:
        known = site.visible(called.span, lambda value: isinstance(value, RouterEntity))
        suggestion = (
            did_you_mean(called.name, known, "the routers here: {known}") if known else "declare it: router NAME = …"
        )
        site.tell(errors.UnknownName(span=called.span, name=called.name, suggestion=suggestion))
        return
    found, way_out = (
        f'"{called.name}" is a kind of router',
        f"give it a name: router r = {called.name}, and x -> pool by r",
    )
    site.tell(errors.WrongKind(span=called.span, needed="a router", found=found, way_out=way_out))


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
