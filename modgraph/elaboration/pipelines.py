"""Evaluates pipelines: values that pass through stages, or templates, which have no value at the head.

A router or weights route a value through a pool; weights also sum a value over an axis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.diagnostics import Span, closest, did_you_mean
from modgraph.elaboration import entities, errors
from modgraph.elaboration.apply import ADD, MULTIPLY, SEND, apply_op
from modgraph.elaboration.calls import resolve_axis
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, Family, OpUse, Poison, PoolEntity, Template, Tensor, describe
from modgraph.elaboration.messages import pack_message, unpack_results
from modgraph.elaboration.nodes import is_own
from modgraph.elaboration.routes import ByRouter, ByWeights, Weighting, apply_pool
from modgraph.ops.along_axis import Mean, Sum
from modgraph.ops.linear import Contract
from modgraph.ops.shape import Stack
from modgraph.syntax import ast
from modgraph.types import format_shape
from modgraph.vocabulary import find_op, is_router


def evaluate_pipeline(expression: ast.Pipeline, elaborator: Elaborator) -> Any:
    head, span, clause = elaborator.evaluate(expression.head), expression.head.span, expression.by
    match head:
        case Template() if clause is None:
            here = head.scope is elaborator.scope
            first = head.stages if here else (ast.Stage(span=span, term=expression.head),)
            return elaborator.make_template(*first, *expression.stages)
        case entities.ModuleEntity():
            return elaborator.make_template(ast.Stage(span=span, term=expression.head, by=clause), *expression.stages)
        case Tensor() | entities.TensorTuple() | Poison():
            head = head if clause is None else _sum_head(head, clause, span, elaborator)
        case Family() if head.of_values:
            pass
        case _:
            head = elaborator.report(errors.NotValue(span=span, what="the head of a pipeline", found=describe(head)))
    return _apply_stages(head, expression.stages, elaborator)


def _apply_stages(value: Any, stages: tuple[ast.Stage, ...], elaborator: Elaborator) -> Any:
    for stage in stages:
        term = elaborator.resolve_callable(stage.term)
        weighting = None if stage.by is None else _evaluate_weighting(stage.by, elaborator)
        if isinstance(value, Poison) or isinstance(term, Poison) or isinstance(weighting, Poison):
            value = POISON
        elif isinstance(value, Family):
            value = _apply_to_family(term, weighting, value, stage, elaborator)
        else:
            value = _apply_to_tensors(term, weighting, entities.flatten_values(value), stage, elaborator)
        elaborator.context.observe(stage.span, value)
    return value


def apply_template(template: Template, tensors: tuple[Tensor, ...], span: Span, elaborator: Elaborator) -> Any:
    value = tensors[0] if len(tensors) == 1 else entities.TensorTuple(tensors)
    with elaborator.context.enter_application(template.span, span):
        return _apply_stages(value, template.stages, elaborator.enter_template(template))


def _sum_head(value: Any, clause: ast.ByClause, span: Span, elaborator: Elaborator) -> Any:
    """Evaluate `x by w over AXIS` at the head of a pipeline: a weighted sum without a pool."""
    weighting = _evaluate_weighting(clause, elaborator)
    if isinstance(value, Poison) or isinstance(weighting, Poison):
        return POISON
    if isinstance(weighting, ByRouter):
        way_out = f"send it through a pool: x -> p by {weighting.router.path}"
        return elaborator.refuse(clause.value.span, "a value", f'the router "{weighting.router.path}"', way_out)
    if isinstance(value, Tensor):
        return _apply_sum(value, weighting, clause.span, elaborator)
    return elaborator.report(errors.NotValue(span=span, what="the summed value", found=describe(value)))


def _apply_to_family(
    term: Any, weighting: Weighting | None, family: Family, stage: ast.Stage, elaborator: Elaborator
) -> Any:
    """Apply a stage to a family: mean and sum run over members, stack names their axis, other ops take all."""
    members, span = tuple(family.members.values()), stage.span
    match term:
        case OpUse(op=Mean() | Sum() as op) if not op.values():
            total: Any = members[0]
            for member in members[1:]:
                total = POISON if total is POISON else apply_op(OpUse(ADD()), (total, member), span, elaborator)
            if isinstance(op, Sum) or isinstance(total, Poison):
                return total
            return apply_op(OpUse(MULTIPLY(left=1 / len(members))), (total,), span, elaborator)
        case OpUse(op=Stack(axis="")):
            return elaborator.apply(replace(term, op=Stack(axis=family.name)), members, span)
        case _:
            return _apply_to_tensors(term, weighting, members, stage, elaborator)


def _apply_to_tensors(
    term: Any, weighting: Weighting | None, tensors: tuple[Tensor, ...], stage: ast.Stage, elaborator: Elaborator
) -> Any:
    if isinstance(term, PoolEntity):
        return _apply_pool(term, weighting, tensors, stage.span, elaborator)
    if isinstance(weighting, ByRouter):
        way_out = "a router chooses among the modules of a pool: pool p[4] = linear(8)"
        return elaborator.refuse(stage.term, "a pool", describe(term), way_out)
    value = elaborator.apply(term, tensors, stage.span)
    if weighting is None or stage.by is None or isinstance(value, Poison):
        return value
    if isinstance(value, Tensor):
        return _apply_sum(value, weighting, stage.by.span, elaborator)
    return elaborator.report(errors.NotValue(span=stage.term.span, what="the summed value", found=describe(value)))


def _apply_pool(
    pool: PoolEntity, weighting: Weighting | None, tensors: tuple[Tensor, ...], span: Span, elaborator: Elaborator
) -> Any:
    used: tuple[entities.DeclaredEntity, ...] = (pool,)
    if isinstance(weighting, ByRouter):
        used = (pool, weighting.router, *weighting.pools)
    if not all(is_own(each, span, elaborator) for each in used):
        return POISON
    message = pack_message(pool, tensors, span, elaborator)
    value = message if isinstance(message, Poison) else apply_pool(pool, message, weighting, span, elaborator)
    return unpack_results(pool, value, span, elaborator)


# ---------------------------------------------------------------- what stands behind `by`


def _evaluate_weighting(clause: ast.ByClause, elaborator: Elaborator) -> Weighting | Poison:
    """Evaluate a `by` clause; poison after a reported mistake."""
    called = clause.value.callee if isinstance(clause.value, ast.Call) else clause.value
    found: Any = None
    if isinstance(called, ast.Name) and elaborator.scope.find(called.name) is None:
        if isinstance(clause.value, ast.Call) and find_op(called.name) is not None:
            found = elaborator.evaluate(clause.value)
        if not isinstance(found, Tensor | Poison):
            _report_unknown(called, elaborator)
            return POISON
    elif isinstance(called, ast.Name | ast.Attribute | ast.Index):
        found = elaborator.evaluate(called)
    if isinstance(found, entities.RouterEntity):
        return _evaluate_router(found, clause, elaborator)
    if not isinstance(found, Tensor | Poison) and (called is not clause.value or found is None):
        found = elaborator.evaluate(clause.value)
    if isinstance(found, Poison):
        return POISON
    if isinstance(found, Tensor):
        match clause.over:
            case None:
                return ByWeights(found, None)
            case ast.Name(name=name) | ast.Literal(value=str(name)):
                edges = elaborator.scope.find(name)
                if isinstance(edges, Tensor) and edges.type.dtype == "edge":
                    return ByWeights(found, name, edges)
                return ByWeights(found, resolve_axis(name, elaborator))
            case place:
                return ByWeights(found, int(elaborator.evaluate_constant(place, "the place of an axis")))
    if elaborator.find_argument(called) is None:
        way_out = "declare it, router NAME = …, or give weights: x -> pool by w over expert"
        return elaborator.refuse(clause.value.span, "a router or weights", describe(found), way_out)
    way_out = "name a declared router, or declare one in the block: router r = kind"
    return elaborator.refuse(called, "a router or weights", describe(found), way_out)


def _evaluate_router(router: entities.RouterEntity, clause: ast.ByClause, elaborator: Elaborator) -> Weighting | Poison:
    if clause.over is not None:
        way_out = f"leave it out: x -> pool by {router.path}"
        return elaborator.refuse(clause.over.span, "a router without over", "over", way_out)
    others, pools = list[Tensor | Poison](), list[PoolEntity]()
    for value in [each.value for each in clause.value.arguments] if isinstance(clause.value, ast.Call) else ():
        pool = elaborator.evaluate(value) if isinstance(value, ast.Name | ast.Index) else None
        if isinstance(pool, PoolEntity):
            pools.append(pool)
        else:
            others.append(elaborator.evaluate_tensor(value, "an operand of a router"))
    tensors = tuple(each for each in others if isinstance(each, Tensor))
    return ByRouter(router, tensors, tuple(pools)) if len(tensors) == len(others) else POISON


def _report_unknown(called: ast.Name, elaborator: Elaborator) -> None:
    """Report an unknown name in a `by` clause: a kind of router, an op, or neither."""
    name = called.name
    if elaborator.report_ended(name, called.span):
        return
    if is_router(name) or elaborator.scope.find_router(name) is not None:
        way_out = f"give it a name: router r = {name}, and x -> pool by r"
        elaborator.refuse(called.span, "a router", f'the kind of router "{name}"', way_out)
    elif find_op(name) is not None:
        way_out = f"write weights as a value: by (x -> {name})"
        elaborator.refuse(called.span, "a router or weights", f'the op "{name}"', way_out)
    else:
        known = elaborator.list_candidates(called.span, lambda value: isinstance(value, entities.RouterEntity))
        declare = "declare it: router NAME = …"
        suggestion = did_you_mean(name, known, "the routers here: {known}") if known else declare
        elaborator.report(errors.UnknownName(span=called.span, name=name, suggestion=suggestion))


def _apply_sum(value: Tensor, weighting: ByWeights, span: Any, elaborator: Elaborator) -> Any:
    """Apply `x by w over AXIS`: Σ w x, the sum of products over an axis of both."""
    over, shape = weighting.over, value.type.shape
    if weighting.edges is not None:
        return apply_op(OpUse(SEND()), (value, weighting.edges, weighting.weights), span, elaborator)
    if over is None:
        shared = [axis.name for axis in weighting.weights.type.shape if axis.name and axis in shape]
        if len(shared) != 1:
            types = f"{weighting.weights.type} and {value.type}"
            found = f"{' and '.join(shared) if shared else 'no named axis'} in {types}"
            again = (axis.name for axis in shape if axis.of and axis.name in shared)
            edges = _find_edges(weighting.weights, elaborator)
            way_out = f"say which is summed: by … over {edges or next(again, shared[0] if shared else -1)}"
            return elaborator.refuse(span, "one axis to sum over", found, way_out)
        (over,) = shared
    if isinstance(over, str) and value.type.position(over) is None:
        reason = f'unknown axis "{over}" in {format_shape(shape)}'
        way_out = _explain_missing_axis(over, value, weighting.weights)
        return elaborator.report(errors.DoesNotFit(span=span, who="the summed value", reason=reason, way_out=way_out))
    return apply_op(OpUse(Contract(axis=over)), (weighting.weights, value), span, elaborator)


def _find_edges(weights: Tensor, elaborator: Elaborator) -> str | None:
    """Find the name of the edges that have weights."""
    named = [(name, each) for scope in elaborator.scope.chain() for name, each in scope.names.items()]
    edges = ((name, each.type) for name, each in named if isinstance(each, Tensor) and each.type.ends)
    return next((name for name, type_ in edges if type_.shape[0] in weights.type.shape), None)


def _explain_missing_axis(over: str, value: Tensor, weights: Tensor) -> str:
    """Explain how a value gets an axis that it is summed over, or which axes it has."""
    names = [axis.name for axis in value.type.shape if axis.name]
    axes = f"axes are: {', '.join(names) or 'no named axis'}"
    if meant := closest(over, names):
        return f'did you mean "{meant}"? {axes}'
    of_weights = next((axis for axis in weights.type.shape if axis.name == over), None)
    for axis in value.type.shape:
        if axis.is_padded and of_weights is not None and axis.lengths == of_weights.lengths:
            again = f'read the value along it: -> rename({axis.name}="{over}")'
            return again if of_weights.of else f"sum over the other reading: over {axis.name}"
        if axis.is_padded and of_weights is None:
            return f'{axes}; read the tokens again for weights and value: -> rename({axis.name}="{over}")'
    return axes
