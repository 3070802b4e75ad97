"""Pipelines: values sent from stage to stage, or, without a value at the head, something to be applied later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration import entities, errors
from modgraph.elaboration.apply import ADD, MULTIPLY, apply_op
from modgraph.elaboration.entities import POISON, Family, OpUse, Poison, PoolEntity, Template, Tensor, described
from modgraph.elaboration.messages import results_of, sent_together
from modgraph.elaboration.routes import apply_every_module, apply_route, apply_weighted
from modgraph.elaboration.sending import ByRouter, ByWeights, Means, apply_sum, means_of
from modgraph.elaboration.site import Site
from modgraph.ops.along_axis import Mean, Sum
from modgraph.ops.shape import Stack
from modgraph.syntax import ast


def evaluate_pipeline(expression: ast.Pipeline, site: Site) -> Any:
    head, span, sent = site.evaluate(expression.head), expression.head.span, expression.sent
    match head:
        case Template() if sent is None:
            here = head.scope is site.scope
            first = head.stages if here else (ast.Stage(span=span, term=expression.head),)
            return site.unapplied(*first, *expression.stages)
        case entities.ModuleEntity():
            return site.unapplied(ast.Stage(span=span, term=expression.head, sent=sent), *expression.stages)
        case Tensor() | entities.TensorTuple() | Poison():
            head = head if sent is None else _summed(head, sent, span, site)
        case Family() if head.of_values:
            pass
        case _:
            head = site.tell(errors.NotValue(span=span, what="the head of a pipeline", found=described(head)))
    return _apply_stages(head, expression.stages, site)


def _apply_stages(value: Any, stages: tuple[ast.Stage, ...], site: Site) -> Any:
    for stage in stages:
        term = site.callable(stage.term)
        means = None if stage.sent is None else means_of(stage.sent, site)
        if isinstance(value, Poison) or isinstance(term, Poison) or isinstance(means, Poison):
            value = POISON
        elif isinstance(value, Family):
            value = _apply_to_family(term, means, value, stage, site)
        else:
            value = _apply_to_tensors(term, means, entities.several(value), stage, site)
        site.context.observe(stage.span, value)
    return value


def apply_template(template: Template, tensors: tuple[Tensor, ...], span: Span, site: Site) -> Any:
    value = tensors[0] if len(tensors) == 1 else entities.TensorTuple(tensors)
    with site.context.applying(template.span, span):
        return _apply_stages(value, template.stages, site.where_written(template))


def _summed(value: Any, sent: ast.Sent, span: Span, site: Site) -> Any:
    """`x by w over AXIS`: a weighted sum of what stands there, without a pool."""
    means = means_of(sent, site)
    if isinstance(value, Poison) or isinstance(means, Poison):
        return POISON
    if isinstance(means, ByRouter):
        found, way_out = f'"{means.router.path}" is a router', f"send it through a pool: x -> p by {means.router.path}"
        return site.tell(errors.WrongKind(span=sent.by.span, needed="a value", found=found, way_out=way_out))
    if isinstance(value, Tensor):
        return apply_sum(value, means, sent.span, site)
    return site.tell(errors.NotValue(span=span, what="what is summed", found=described(value)))


def _apply_to_family(term: Any, means: Means | None, family: Family, stage: ast.Stage, site: Site) -> Any:
    """Mean and sum run over the members of a family, stack gives them an axis called after it; other ops take all."""
    members, span = tuple(family.members.values()), stage.span
    match term:
        case OpUse(op=Mean() | Sum() as op) if not op.values():
            total: Any = members[0]
            for member in members[1:]:
                total = POISON if total is POISON else apply_op(OpUse(ADD()), (total, member), span, site)
            if isinstance(op, Sum) or isinstance(total, Poison):
                return total
            return apply_op(OpUse(MULTIPLY(left=1 / len(members))), (total,), span, site)
        case OpUse(op=Stack(axis="")):
            return site.apply(replace(term, op=Stack(axis=family.name)), members, span)
        case _:
            return _apply_to_tensors(term, means, members, stage, site)


def _apply_to_tensors(term: Any, means: Means | None, tensors: tuple[Tensor, ...], stage: ast.Stage, site: Site) -> Any:
    if isinstance(term, PoolEntity):
        return _apply_pool(term, means, tensors, stage.span, site)
    if isinstance(means, ByRouter):
        fault, found = site.at_fault(stage.term), f"this is {described(term)}"
        way_out = "a router chooses among the modules of a pool: pool p[4] = linear(8)"
        return site.tell(errors.WrongKind(**fault, needed="a pool", found=found, way_out=way_out))
    value = site.apply(term, tensors, stage.span)
    if means is None or stage.sent is None or isinstance(value, Poison):
        return value
    if isinstance(value, Tensor):
        return apply_sum(value, means, stage.sent.span, site)
    return site.tell(errors.NotValue(span=stage.term.span, what="what is summed", found=described(value)))


def _apply_pool(pool: PoolEntity, means: Means | None, tensors: tuple[Tensor, ...], span: Span, site: Site) -> Any:
    used: tuple[entities.DeclaredEntity, ...] = (pool,)
    if isinstance(means, ByRouter):
        used = (pool, means.router, *means.pools)
    if not all(site.is_own(each, span) for each in used):
        return POISON
    sent = sent_together(pool, tensors, span, site)
    match sent, means:
        case Poison(), _:
            return POISON
        case _, None:
            value = apply_every_module(pool, sent, span, site)
        case _, ByRouter():
            value = apply_route(pool, means, sent, span, site)
        case _, ByWeights():
            value = apply_weighted(pool, sent, means, span, site)
    return results_of(pool, value, span, site)
