"""Evaluates operators, ranges, indices and functions of constants, and turns operators on values into ops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from modgraph.declare import format_briefly, product
from modgraph.diagnostics import Span
from modgraph.elaboration import constants, entities, errors
from modgraph.elaboration.apply import MULTIPLY, apply_op
from modgraph.elaboration.constants import ConstantProblem
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import (
    POISON,
    Entity,
    OpUse,
    Poison,
    PoolEntity,
    PoolMember,
    Tensor,
    WithAxis,
    describe,
)
from modgraph.elaboration.nodes import find_node
from modgraph.ir import PoolNode
from modgraph.ops.arithmetic import ARITHMETIC
from modgraph.ops.compared import COMPARISONS, MIRRORED
from modgraph.ops.ids import FloorDivide, Modulo
from modgraph.syntax import ast

OPERATORS = {**ARITHMETIC, **COMPARISONS, Modulo.symbol: Modulo, FloorDivide.symbol: FloorDivide}
MOST_LISTED = 20  # members of a family in a message
LOGIC = {
    "and": "for zeros and ones multiply: (a > 0) * (b > 0)",
    "or": "for zeros and ones take the maximum: (a > 0, b > 0) -> maximum",
    "not": "for zeros and ones write: 1 - (a > 0)",
}


def _evaluate_range(expression: ast.Range, elaborator: Elaborator) -> Any:
    ends = (
        elaborator.evaluate_constant(expression.start, "a bound"),
        elaborator.evaluate_constant(expression.stop, "a bound"),
    )
    return fold_constants(expression, elaborator, constants.make_range, *ends)


def evaluate_constant_call(name: str, call: ast.Call, elaborator: Elaborator) -> Any:
    if name == constants.GIVEN:
        return _is_given(call, elaborator)
    if name in constants.OF_POOL and len(call.arguments) == 1:
        argument = call.arguments[0].value
        pool = elaborator.evaluate(argument)
        if name == "len" and type(pool) is int and isinstance(argument, ast.Name) and argument.name in elaborator.axes:
            return pool
        if isinstance(pool, WithAxis) and name == "len":
            return pool.size
        if isinstance(pool, PoolEntity):
            return _measure_pool(name, pool, call, elaborator)
    values = [elaborator.evaluate_constant(argument.value, f"an argument of {name}") for argument in call.arguments]
    return POISON if POISON in values else evaluate_function(name, values, call, elaborator)


def _is_given(call: ast.Call, elaborator: Elaborator) -> Any:
    """Return whether a use of this block gives an input that has a default."""
    of_call = elaborator.call
    inputs = {} if of_call is None else {each.reference.name: each for each in of_call.inputs}
    argument = call.arguments[0].value if len(call.arguments) == 1 else None
    name = argument.name if isinstance(argument, ast.Name) else ""
    if elaborator.context.without_use:
        return True
    if elaborator.scope.find(name) is POISON:
        return POISON
    if of_call is None or name not in inputs or inputs[name].default is None:
        known = [name for name, each in inputs.items() if each.default is not None]
        way_out = f"inputs with a default: {', '.join(known)}" if known else "give the input one: input NAME: TYPE = …"
        return elaborator.refuse(call, "an input with a default, earlier in this block", call.span.text, way_out)
    return name in of_call.given


def _measure_pool(name: str, pool: PoolEntity, call: ast.Call, elaborator: Elaborator) -> Any:
    """Return the number of axes or elements that modules take or yield; for results, the size of the last axis."""
    node = find_node(pool.path, elaborator)
    if not isinstance(node, PoolNode):
        return elaborator.report(
            errors.Arithmetic(span=call.span, problem=f"{name} is known only after the first use of the pool")
        )
    of_message = name.startswith("message")
    shape = node.message.shape if of_message else node.result.shape
    if name.endswith("rank"):
        return len(shape)
    measured = shape if of_message else shape[-1:]
    if (shape or of_message) and not any(axis.is_padded for axis in measured):
        return product(measured)
    lacks = "take no value of a fixed size" if of_message else "yield no axis of a fixed length"
    return elaborator.report(errors.Arithmetic(span=call.span, problem=f"its modules {lacks}"))


def evaluate_function(name: str, values: list[Any], call: ast.Call, elaborator: Elaborator) -> Any:
    """Evaluate a function of constants and report its problems."""
    longest = max((len(value) for value in values if isinstance(value, tuple | range)), default=0)
    elaborator.context.spend(min(longest, constants.LONGEST_LIST), call.span)
    return fold_constants(call, elaborator, constants.call, name, values)


def _evaluate_unary(expression: ast.Unary, elaborator: Elaborator) -> Any:
    value = elaborator.evaluate(expression.operand)
    if isinstance(value, Tensor) and expression.operator == "-":
        return apply_op(OpUse(MULTIPLY(left=-1.0)), (value,), expression.span, elaborator)
    if isinstance(value, Entity):
        return _refuse_operands(expression, (value,), elaborator)
    return fold_constants(expression, elaborator, constants.apply_unary, expression.operator, value)


def _evaluate_binary(expression: ast.Binary, elaborator: Elaborator) -> Any:
    values, operator = (
        (elaborator.evaluate(expression.left), elaborator.evaluate(expression.right)),
        expression.operator,
    )
    if not any(isinstance(value, Entity) for value in values):
        sound = check_size(values, expression, elaborator)
        return fold_constants(expression, elaborator, constants.apply_binary, operator, *values) if sound else POISON
    left, right = values
    if operator in COMPARISONS and not isinstance(left, Entity):
        left, right, operator = right, left, MIRRORED[operator]
    op: Any = OPERATORS.get(operator)
    if op is None or not all(isinstance(value, Tensor) or type(value) in (int, float) for value in values):
        return _refuse_operands(expression, values, elaborator)
    numbers = {side: float(each) for side, each in (("left", left), ("right", right)) if not isinstance(each, Tensor)}
    tensors = tuple(value for value in (left, right) if isinstance(value, Tensor))
    if op in (Modulo, FloorDivide):
        return _divide_ids(op, expression, values, elaborator)
    return apply_op(OpUse(op(**numbers)), tensors, expression.span, elaborator)


def _divide_ids(op: Any, expression: ast.Binary, values: tuple[Any, ...], elaborator: Elaborator) -> Any:
    """Divide ids by a constant, which must be a positive whole number."""
    ids, number = values
    if isinstance(ids, Tensor) and type(number) is int and number > 0:
        return apply_op(OpUse(op(right=number)), (ids,), expression.span, elaborator)
    problem = f'"{op.symbol}" divides ids by a positive whole number, not {describe(number)}'
    if not isinstance(ids, Tensor):
        problem = f'"{op.symbol}" divides ids, not {describe(ids)}'
    way_out = f"for example: words {op.symbol} 8"
    return elaborator.report(errors.Arithmetic(span=expression.span, problem=problem, way_out=way_out))


def _refuse_operands(expression: Any, values: tuple[Any, ...], elaborator: Elaborator) -> Poison:
    if any(elaborator.is_axis(value, expression.span) for value in values) or POISON in values:
        return POISON
    found = [value for value in values if isinstance(value, Entity)]
    culprit = next((value for value in found if not isinstance(value, Tensor)), found[0])
    way_out = LOGIC.get(expression.operator, "") if isinstance(culprit, Tensor) else ""
    if isinstance(culprit, entities.Template):
        way_out = "apply an op with an arrow, and put the pipeline in parentheses: (x -> op)"
    if isinstance(culprit, entities.AxisEntity):
        way_out = "write its length: len(AXIS)"
    problem = f'"{expression.operator}" needs numbers or values, not {describe(culprit)}'
    return elaborator.report(errors.Arithmetic(span=expression.span, problem=problem, way_out=way_out))


def _evaluate_index(expression: ast.Index, elaborator: Elaborator) -> Any:
    target, span = elaborator.evaluate(expression.target), expression.span
    index = elaborator.evaluate_constant(expression.index, "an index")
    if isinstance(target, Poison) or isinstance(index, Poison):
        return POISON
    if not isinstance(target, Entity):
        return fold_constants(expression, elaborator, constants.take_item, target, index)
    if isinstance(target, PoolEntity):
        return _find_module(target, index, span, elaborator)
    problem = f"{describe(target)} has no members"
    way_out = "take a token with: -> select(0)" if isinstance(target, Tensor) else ""
    if isinstance(target, entities.Family):
        if index in target.members:
            return target.members[index]
        known = ", ".join(format_briefly(key) for key in islice(target.members, MOST_LISTED)) or "none"
        problem = f'"{target.name}" has no member {format_briefly(index)}'
        way_out = f"members are: {known}" + (", …" if len(target.members) > MOST_LISTED else "")
    return elaborator.report(errors.BadIndex(span=span, problem=problem, way_out=way_out))


def _find_module(pool: PoolEntity, index: Any, span: Span, elaborator: Elaborator) -> PoolMember | Poison:
    """Return the module of a pool at an index."""
    if type(index) is int and 0 <= index < pool.size:
        return PoolMember(pool, index)
    problem = f'the pool "{pool.path}" has no module {format_briefly(index)}'
    last = f"{pool.path.rpartition('.')[2]}[{pool.size - 1}]"
    return elaborator.report(errors.BadIndex(span=span, problem=problem, way_out=f"the last is {last}"))


RULES: dict[type[ast.Expression], Callable[[Any, Elaborator], Any]] = {
    ast.Unary: _evaluate_unary,
    ast.Binary: _evaluate_binary,
    ast.Range: _evaluate_range,
    ast.Index: _evaluate_index,
}


def fold_constants(expression: ast.Tree, elaborator: Elaborator, function: Any, *values: Any) -> Any:
    """Compute a constant from constants and report problems."""
    if POISON in values:
        return POISON
    try:
        return function(*values)
    except ConstantProblem as problem:
        kind = errors.BadIndex if isinstance(expression, ast.Index) else errors.Arithmetic
        return elaborator.report(kind(span=expression.span, problem=problem.problem, way_out=problem.way_out))


def check_size(value: Any, expression: ast.Expression, elaborator: Elaborator) -> bool:
    """Charge the work for a list and its nested lists; report and return False if the list is too large."""
    count, depth = constants.measure_extent(value)
    elaborator.context.spend(count, expression.span)
    return not isinstance(fold_constants(expression, elaborator, constants.check_extent, count, depth), Poison)
