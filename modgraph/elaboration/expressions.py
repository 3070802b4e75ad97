"""What an expression stands for: a constant, a value of the network, or something that can be applied to one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Any

from modgraph.elaboration import constants, errors
from modgraph.elaboration.arithmetic import (
    computed,
    constant_call,
    counted,
    evaluate_binary,
    evaluate_index,
    evaluate_range,
    evaluate_unary,
)
from modgraph.elaboration.calls import CallArgument, arguments_for_block, arguments_of, settle
from modgraph.elaboration.entities import (
    POISON,
    BlockEntity,
    Entity,
    Family,
    OpUse,
    Poison,
    PoolEntity,
    RouterEntity,
    Tensor,
    TensorTuple,
    described,
    is_block,
    is_callable,
    is_passed,
    is_value,
)
from modgraph.elaboration.pipelines import evaluate_pipeline
from modgraph.elaboration.records import apply_statistic, evaluate_attribute
from modgraph.elaboration.site import Site
from modgraph.ops import Op
from modgraph.syntax import ast
from modgraph.vocabulary import find_op, is_router, op_meant, value_meant

OPERANDS = Tensor | RouterEntity | Family | Poison  # what an op in function style may begin with


def _literal(expression: ast.Literal, site: Site) -> Any:
    return expression.value


def _name(expression: ast.Name, site: Site) -> Any:
    name = expression.name
    found = site.scope.find(name, is_value)
    if found is None:
        found = site.scope.find(name)
    if isinstance(found, BlockEntity):
        return site.unapplied(ast.Stage(span=expression.span, term=expression))
    if found is not None:
        site.context.observe(expression.span, found)
        return found
    op = find_op(name)
    if name in site.axes and not (op is not None and _is_whole(op)):
        site.tell_axis(name, expression.span)
        return POISON
    if op is not None:
        return site.unapplied(ast.Stage(span=expression.span, term=expression))
    if site.report_ended(name, expression.span):
        return POISON
    known = [*site.visible(expression.span), *constants.FUNCTIONS]
    suggestion = {"True": 'write "true"', "False": 'write "false"', "None": "leave it out"}.get(name)
    site.tell(errors.UnknownName(span=expression.span, name=name, suggestion=suggestion or value_meant(name, known)))
    return POISON


def _is_whole(op: type[Op]) -> bool:
    """Whether an op is something without arguments."""
    return not any(setting.required for setting in op.settings().values())


def _list(expression: ast.ListOf, site: Site) -> Any:
    items = []
    for item in expression.items:
        value = site.evaluate(item)
        if isinstance(value, Entity) and not isinstance(value, Poison):
            advice = "several values stand in parentheses: (a, b) -> concat"
            if is_callable(value):
                advice = "unlike modules are listed in a pool: pool p = [linear(4), identity]"
            what, found = "a member of a list", described(value)
            site.tell(errors.NotConstant(span=item.span, what=what, found=found, way_out=advice))
            value = POISON
        items.append(value)
    if any(value is POISON for value in items):
        return POISON
    return tuple(items) if counted(tuple(items), expression, site) else POISON


def _tuple(expression: ast.TupleOf, site: Site) -> Any:
    values = tuple(value for item in expression.items for value in site.tensors(item, "an operand"))
    return POISON if POISON in values else TensorTuple(values)


def _call(call: ast.Call, site: Site) -> Any:
    if not isinstance(call.callee, ast.Name):
        return site.tell(
            errors.WrongKind(
                span=call.callee.span,
                needed="a name",
                found="this is an expression",
                way_out="an op is applied with an arrow: y = x -> relu",
            )
        )
    name = call.callee.name
    if site.scope.find(name, is_passed) is not None:
        return _call_passed(call, site)
    block = site.scope.find(name, is_block)
    if block is not None:
        return site.unapplied(ast.Stage(span=call.span, term=call))
    op = find_op(name)
    if op is None and name in constants.FUNCTIONS:
        return constant_call(name, call, site)
    if op is None:
        return _unknown_call(call, name, site)
    given = arguments_of(call, site)
    words = [(word, each.span) for each in given if each.name is None and (word := site.word_of_axis(each.value))]
    if name in constants.FUNCTIONS and words:
        site.tell_axis(*words[0])
        return POISON
    if name in constants.FUNCTIONS and _of_constants(op, given):
        return computed(name, [argument.value for argument in given], call, site)
    given = _numbers_as_settings(op, given)
    operands = []
    kinds = OPERANDS | PoolEntity if op.objective else OPERANDS  # a statistic of a pool is told to be of its router
    while given and given[0].name is None and isinstance(given[0].value, kinds):
        operands.append(given.pop(0))
    if any(isinstance(argument.value, Poison) for argument in [*operands, *given]):
        return POISON
    if not operands and any(argument.name is None and isinstance(argument.value, Tensor) for argument in given):
        way_out = f"{name}imum(0, x) is of two" if name in ("min", "max") else f"as in {name}(x, …)"
        site.tell(errors.DoesNotFit(span=call.span, who=name, reason="values come before settings", way_out=way_out))
        return POISON
    if not operands:
        return site.unapplied(ast.Stage(span=call.span, term=call))
    settled = settle(op, given, site, call.span)
    if isinstance(settled, Poison):
        return POISON
    return apply_statistic(settled, [(each.value, each.span) for each in operands], call, site)


def _call_passed(call: ast.Call, site: Site) -> Any:
    """A call of what was passed as an argument: applied to the values that it begins with, if to any."""
    arguments = arguments_for_block(call, site)
    if any(isinstance(argument.value, Poison) for argument in arguments):
        return POISON
    operands = list(takewhile(lambda each: each.name is None and isinstance(each.value, Tensor), arguments))
    if not operands:
        return site.unapplied(ast.Stage(span=call.span, term=call))
    settled = site.callable(replace(call, arguments=call.arguments[len(operands) :]))
    if isinstance(settled, Poison):
        return POISON
    if not isinstance(settled, OpUse):
        found, way_out = "this is a block", "a block is applied with an arrow: x -> ffn"
        return site.tell(errors.WrongKind(span=call.span, needed="an op", found=found, way_out=way_out))
    return apply_statistic(settled, [(each.value, each.span) for each in operands], call, site)


def _numbers_as_settings(op: type[Op], given: list[CallArgument]) -> list[CallArgument]:
    """The arguments of an op applied like a function, where a number may stand for a value: such numbers come last."""
    if not any(isinstance(argument.value, Tensor) for argument in given):
        return given
    names = (*op.constant_for, *[""] * len(given))
    placed = [
        replace(argument, name=name)
        if name and argument.name is None and type(argument.value) in (int, float)
        else argument
        for argument, name in zip(given, names, strict=False)
    ]
    return sorted(placed, key=lambda argument: argument.name is not None)


def _of_constants(op: type[Op], given: list[CallArgument]) -> bool:
    """Whether the arguments of a call are numbers to compute with, rather than the settings of the op of that name."""
    plain = all(argument.name is None and not isinstance(argument.value, Entity) for argument in given)
    lists = any(isinstance(argument.value, tuple | range) for argument in given)
    return plain and (lists or len(given) > len(op.settings()))


def _unknown_call(call: ast.Call, name: str, site: Site) -> Any:
    found = site.scope.find(name)
    if isinstance(found, Poison):
        return POISON
    if found is not None or is_router(name) or site.scope.find_router(name) is not None:
        what = described(found) if found is not None else f'the router "{name}"'
        advice = "a router is declared: router NAME = …" if found is None else "only ops and routers take arguments"
        return site.tell(errors.WrongKind(span=call.span, needed="an op", found=f"this is {what}", way_out=advice))
    if name == "range":
        advice = "a range is written with two dots: 0..4"
        return site.tell(errors.UnknownOp(span=call.callee.span, name=name, suggestion=advice))
    suggestion = op_meant(name, [*site.visible(call.span, is_callable), *constants.FUNCTIONS])
    return site.tell(errors.UnknownOp(span=call.callee.span, name=name, suggestion=suggestion))


EXPRESSIONS: dict[type[ast.Expression], Callable[[Any, Site], Any]] = {
    ast.Literal: _literal,
    ast.Name: _name,
    ast.ListOf: _list,
    ast.TupleOf: _tuple,
    ast.Pipeline: evaluate_pipeline,
    ast.Call: _call,
    ast.Unary: evaluate_unary,
    ast.Binary: evaluate_binary,
    ast.Range: evaluate_range,
    ast.Index: evaluate_index,
    ast.Attribute: evaluate_attribute,
}
