"""Evaluates expressions to constants, values of the network, or callables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Any

from modgraph.declare import format_value
from modgraph.elaboration import arithmetic, constants, entities, errors
from modgraph.elaboration.arithmetic import check_size, evaluate_constant_call, evaluate_function
from modgraph.elaboration.blocks import use_block
from modgraph.elaboration.calls import CallArgument, bind_settings, evaluate_arguments
from modgraph.elaboration.decisions import apply_statistic, evaluate_attribute
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, BlockEntity, Entity, Poison, Template, Tensor, describe, is_callable
from modgraph.elaboration.pipelines import evaluate_pipeline
from modgraph.ops import Op
from modgraph.syntax import ast
from modgraph.vocabulary import find_op, is_router, list_meant_ops, suggest_op, suggest_value

OPERANDS = Tensor | entities.RouterEntity | entities.Family | Poison  # first arguments of an op in function style
CALLABLE = "an op, a block, a module or a pool"
MEANT = {"True": 'write "true"', "False": 'write "false"', "None": "leave it out"}


def _evaluate_name(expression: ast.Name, elaborator: Elaborator) -> Any:
    name, span = expression.name, expression.span
    found = elaborator.scope.find(name, entities.is_value)
    if found is None:
        found = elaborator.scope.find(name)
    if found is not None and not isinstance(found, BlockEntity):
        elaborator.context.observe(span, found)
        return found
    op = find_op(name) if found is None else None
    has_settings = op is not None and any(setting.required for setting in op.settings().values())
    if found is None and name in elaborator.axes and (op is None or has_settings):
        size = elaborator.axes[name].size
        return elaborator.report_axis(name, span) if size is None else size
    if found is not None or op is not None:
        return elaborator.make_template(ast.Stage(span=span, term=expression))
    if not elaborator.report_ended(name, span):
        suggestion = MEANT.get(name) or suggest_value(name, [*elaborator.list_candidates(span), *constants.FUNCTIONS])
        elaborator.report(errors.UnknownName(span=span, name=name, suggestion=suggestion))
    return POISON


def _evaluate_list(expression: ast.ListOf, elaborator: Elaborator) -> Any:
    items = []
    for item in expression.items:
        value = elaborator.evaluate(item)
        if isinstance(value, Entity) and not isinstance(value, Poison):
            advice = "put several values in parentheses: (a, b) -> concat"
            if is_callable(value):
                advice = "list different modules in a pool: pool p = [linear(4), identity]"
            what, found = "a member of a list", describe(value)
            value = elaborator.report(errors.NotConstant(span=item.span, what=what, found=found, way_out=advice))
        items.append(value)
    poisoned = any(value is POISON for value in items)
    return POISON if poisoned or not check_size(tuple(items), expression, elaborator) else tuple(items)


def _evaluate_tuple(expression: ast.TupleOf, elaborator: Elaborator) -> Any:
    values = tuple(value for item in expression.items for value in elaborator.evaluate_tensors(item, "an operand"))
    return POISON if POISON in values else entities.TensorTuple(values)


def _evaluate_call(call: ast.Call, elaborator: Elaborator) -> Any:
    if not isinstance(call.callee, ast.Name):
        way_out = "apply an op with an arrow: y = x -> relu"
        return elaborator.refuse(call.callee.span, "a name", "an expression", way_out)
    name = call.callee.name
    if elaborator.scope.find(name, lambda found: isinstance(found, Template)) is not None:
        return _evaluate_passed(call, elaborator)
    if elaborator.scope.find(name, lambda found: isinstance(found, BlockEntity)) is not None:
        return elaborator.make_template(ast.Stage(span=call.span, term=call))
    op = find_op(name)
    if op is None:
        return (
            evaluate_constant_call(name, call, elaborator)
            if name in constants.FUNCTIONS
            else _report_unknown_call(call, name, elaborator)
        )
    given = evaluate_arguments(call, elaborator)
    if name in constants.FUNCTIONS:
        if any(elaborator.is_axis(each.value, each.span) for each in given if each.name is None):
            return POISON
        numbers = all(argument.name is None and not isinstance(argument.value, Entity) for argument in given)
        lists = any(isinstance(argument.value, tuple | range) for argument in given)
        if numbers and (lists or len(given) > len(op.settings())):  # before the settings of the op
            return evaluate_function(name, [argument.value for argument in given], call, elaborator)
    given = _order_arguments(op, given)
    kinds = OPERANDS | entities.PoolEntity if op.objective else OPERANDS  # so that a statistic of a pool is reported
    operands = list(takewhile(lambda each: each.name is None and isinstance(each.value, kinds), given))
    settings = given[len(operands) :]
    if any(isinstance(argument.value, Poison) for argument in given):
        return POISON
    if not operands and any(argument.name is None and isinstance(argument.value, Tensor) for argument in settings):
        way_out = f"write {name}imum(0, x) for two" if name in ("min", "max") else f"as in {name}(x, …)"
        reason = "put values before settings"
        return elaborator.report(errors.DoesNotFit(span=call.span, who=name, reason=reason, way_out=way_out))
    if not operands:
        return elaborator.make_template(ast.Stage(span=call.span, term=call))
    settled = bind_settings(op, settings, elaborator, call.span)
    if isinstance(settled, Poison):
        return POISON
    return apply_statistic(settled, [(each.value, each.span) for each in operands], call, elaborator)


def _evaluate_passed(call: ast.Call, elaborator: Elaborator) -> Any:
    """Evaluate a call of an argument that was passed in; leading values are its operands."""
    arguments = evaluate_arguments(call, elaborator, of_op=False)
    if any(isinstance(argument.value, Poison) for argument in arguments):
        return POISON
    operands = list(takewhile(lambda each: each.name is None and isinstance(each.value, Tensor), arguments))
    if not operands:
        return elaborator.make_template(ast.Stage(span=call.span, term=call))
    settled = elaborator.resolve_callable(replace(call, arguments=call.arguments[len(operands) :]))
    if isinstance(settled, entities.OpUse):
        return apply_statistic(settled, [(each.value, each.span) for each in operands], call, elaborator)
    if isinstance(settled, Poison):
        return POISON
    return elaborator.refuse(call.span, "an op", "a block", "apply a block with an arrow: x -> ffn")


def _order_arguments(op: type[Op], given: list[CallArgument]) -> list[CallArgument]:
    """Order the arguments of an op in function style, where numbers may replace values: such numbers last."""
    if not any(isinstance(argument.value, Tensor) for argument in given):
        return given
    placed = [
        replace(argument, name=name)
        if name and argument.name is None and type(argument.value) in (int, float)
        else argument
        for argument, name in zip(given, (*op.constant_for, *[""] * len(given)), strict=False)
    ]
    return sorted(placed, key=lambda argument: argument.name is not None)


def _report_unknown_call(call: ast.Call, name: str, elaborator: Elaborator) -> Any:
    found = elaborator.scope.find(name)
    if isinstance(found, Poison):
        return POISON
    if found is not None or is_router(name) or elaborator.scope.find_router(name) is not None:
        if found is not None:
            return _report_no_op(call, name, found, elaborator)
        return elaborator.refuse(call.span, "an op", f'the router "{name}"', "declare a router: router NAME = …")
    suggestion = "write a range with two dots: 0..4"
    if name != "range":
        suggestion = suggest_op(name, [*elaborator.list_candidates(call.span, is_callable), *constants.FUNCTIONS])
    return elaborator.report(errors.UnknownOp(span=call.callee.span, name=name, suggestion=suggestion))


def _report_no_op(use: ast.Call | ast.Name, name: str, found: Any, elaborator: Elaborator) -> Poison:
    """Report a name that hides the op that is meant: a parameter, or another thing that takes no arguments."""
    is_parameter = name in elaborator.graph.parameters and not isinstance(found, Entity)
    arguments = use.span.text.removeprefix(name)
    way_out = "leave out the arguments: only ops and routers take them"
    if meant := list_meant_ops(name):
        way_out = f"what other libraries call {name}: {' or '.join(op + arguments for op in meant)}"
    what = "a parameter" if is_parameter else describe(found)
    return elaborator.report(errors.NoOp(span=use.span, name=name, found=what, way_out=way_out))


EXPRESSIONS: dict[type[ast.Expression], Callable[[Any, Elaborator], Any]] = {
    ast.Literal: lambda expression, elaborator: expression.value,
    ast.Name: _evaluate_name,
    ast.ListOf: _evaluate_list,
    ast.TupleOf: _evaluate_tuple,
    ast.Pipeline: evaluate_pipeline,
    ast.Call: _evaluate_call,
    **arithmetic.RULES,
    ast.Attribute: evaluate_attribute,
}


def resolve_term(term: ast.Expression, elaborator: Elaborator, further: tuple[CallArgument, ...] = ()) -> Any:
    """Resolve a term right of an arrow to a callable; `further` arguments belong to a term that was passed in."""
    callee = term.callee if isinstance(term, ast.Call) else term
    if not isinstance(callee, ast.Name):
        value = elaborator.evaluate(term)
        if is_callable(value) or isinstance(value, Poison):
            return value
        return elaborator.refuse(term.span, CALLABLE, describe(value))
    found = elaborator.scope.find(callee.name, is_callable)
    called = isinstance(term, ast.Call) or bool(further)
    if isinstance(found, BlockEntity):
        return use_block(found, [*evaluate_arguments(term, elaborator, of_op=False), *further], elaborator, term.span)
    if isinstance(found, Template) and called:
        arguments = (*evaluate_arguments(term, elaborator, of_op=False), *further)
        if found.term is not None:
            with elaborator.context.enter_application(found.span, term.span):
                return resolve_term(found.term, elaborator.enter_template(found), arguments)
        way_out = "name an op or a block"
        return elaborator.refuse(callee, "an op or a block", "a pipeline, which takes no arguments", way_out)
    if found is not None and not called:
        return found
    if (op := find_op(callee.name)) is None:
        return _report_unknown_term(callee, elaborator)
    return bind_settings(op, [*evaluate_arguments(term, elaborator), *further], elaborator, term.span)


def _report_unknown_term(term: ast.Name, elaborator: Elaborator) -> Poison:
    found = elaborator.scope.find(term.name)
    if isinstance(found, Poison) or (found is None and elaborator.report_ended(term.name, term.span)):
        return POISON
    if found is None:
        suggestion = suggest_op(term.name, elaborator.list_candidates(term.span, is_callable))
        return elaborator.report(errors.UnknownOp(span=term.span, name=term.name, suggestion=suggestion))
    if list_meant_ops(term.name) and not elaborator.find_argument(term):
        return _report_no_op(term, term.name, found, elaborator)
    way_out = f"for example: {term.name}=relu" if elaborator.find_argument(term) else ""
    if isinstance(found, entities.Family) and found.members:
        way_out = f"take one of its members: {term.name}[{format_value(next(iter(found.members)))}]"
    return elaborator.refuse(term, CALLABLE, describe(found), way_out)
