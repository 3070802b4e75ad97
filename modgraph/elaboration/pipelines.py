"""Pipelines: values sent from stage to stage, or, without a value at the head, something to be applied later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.diagnostics import Span
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
    several,
)
from modgraph.elaboration.messages import results_of, sent_together
from modgraph.elaboration.routes import apply_every_module, apply_route, apply_weighted
from modgraph.elaboration.sending import ByRouter, ByWeights, Means, apply_sum, means_of
from modgraph.elaboration.site import Site
from modgraph.ops.along_axis import Mean, Sum
from modgraph.ops.shape import Stack
from modgraph.syntax import ast


def evaluate_pipeline(expression: ast.Pipeline, site: Site) -> Any:
    head = site.evaluate(expression.head)
    match head:
        case Template() if expression.sent is None:
            here = head.scope is site.scope
            first = head.stages if here else (ast.Stage(span=expression.head.span, term=expression.head),)
            return site.unapplied(*first, *expression.stages)
        case ModuleEntity():
            module = ast.Stage(span=expression.head.span, term=expression.head, sent=expression.sent)
            return site.unapplied(module, *expression.stages)
        case Tensor() | TensorTuple() | Poison():
            if expression.sent is not None:
                head = _summed(head, expression.sent, expression.head.span, site)
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
    with site.context.applying(template.span, span):
        return apply_stages(value, template.stages, site.where_written(template))


def _apply_stage(value: Any, stage: ast.Stage, site: Site) -> Any:
    term = site.callable(stage.term)
    means = None if stage.sent is None else means_of(stage.sent, site)
    if isinstance(value, Poison) or isinstance(term, Poison) or isinstance(means, Poison):
        return POISON
    if isinstance(value, Family):
        return _apply_to_family(term, means, value, stage, site)
    return _apply_to_tensors(term, means, several(value), stage, site)


def _summed(value: Any, sent: ast.Sent, span: Span, site: Site) -> Any:
    """`x by w over AXIS`: a weighted sum of what stands there, without a pool."""
    means = means_of(sent, site)
    if isinstance(value, Poison) or isinstance(means, Poison):
        return POISON
    if isinstance(means, ByWeights) and isinstance(value, Tensor):
        return apply_sum(value, means, sent.span, site)
    if isinstance(means, ByRouter):
        found, way_out = f'"{means.router.path}" is a router', f"send it through a pool: x -> p by {means.router.path}"
        site.tell(errors.WrongKind(span=sent.by.span, needed="a value", found=found, way_out=way_out))
    else:
        site.tell(errors.NotValue(span=span, what="what is summed", found=described(value)))
    return POISON


def _apply_to_family(term: Any, means: Means | None, family: Family, stage: ast.Stage, site: Site) -> Any:
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
            return _apply_to_tensors(term, means, members, stage, site)


def _sum_of(members: tuple[Tensor, ...], span: Span, site: Site) -> Any:
    total: Any = members[0]
    for member in members[1:]:
        if not isinstance(total, Poison):
            total = apply_op(OpUse(ADD()), (total, member), span, site)
    return total


def _apply_to_tensors(term: Any, means: Means | None, tensors: tuple[Tensor, ...], stage: ast.Stage, site: Site) -> Any:
    if isinstance(term, PoolEntity):
        return _apply_pool(term, means, tensors, stage, site)
    if isinstance(means, ByRouter):
        (span, notes), found = site.at_fault(stage.term), f"this is {described(term)}"
        way_out = "a router chooses among the modules of a pool: pool p[4] = linear(8)"
        return site.tell(errors.WrongKind(span=span, notes=notes, needed="a pool", found=found, way_out=way_out))
    value = site.apply(term, tensors, stage.span)
    if means is None or stage.sent is None or isinstance(value, Poison):
        return value
    if isinstance(value, Tensor):
        return apply_sum(value, means, stage.sent.span, site)
    return site.tell(errors.NotValue(span=stage.term.span, what="what is summed", found=described(value)))


def _apply_pool(
    pool: PoolEntity, means: Means | None, tensors: tuple[Tensor, ...], stage: ast.Stage, site: Site
) -> Any:
    used: tuple[PoolEntity | RouterEntity, ...] = (
        (pool, means.router, *means.pools) if isinstance(means, ByRouter) else (pool,)
    )
    if not all(site.is_own(each, stage.span) for each in used):
        return POISON
    sent = sent_together(pool, tensors, stage.span, site)
    if isinstance(sent, Poison):
        return POISON
    match means:
        case None:
            value = apply_every_module(pool, sent, stage.span, site)
        case ByRouter():
            value = apply_route(pool, means, sent, stage.span, site)
        case ByWeights():
            value = apply_weighted(pool, sent, means, stage.span, site)
    return results_of(pool, value, stage.span, site)
