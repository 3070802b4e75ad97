"""What an expression stands for: a constant, a value of the network, or something that can be applied to one."""

from __future__ import annotations

from itertools import islice
from typing import Any

from modgraph.declare import shown_briefly
from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import constants, errors
from modgraph.elaboration.apply import apply_op, apply_stages, is_block
from modgraph.elaboration.calls import arguments_of, settle
from modgraph.elaboration.constants import ConstantProblem
from modgraph.elaboration.context import RECORD, Here
from modgraph.elaboration.entities import (
    POISON,
    BlockEntity,
    Bound,
    Entity,
    Family,
    ModuleEntity,
    Poison,
    RouterEntity,
    Several,
    Template,
    Tensor,
    described,
)
from modgraph.elaboration.scope import is_value
from modgraph.ops.shape import ARITHMETIC
from modgraph.syntax import ast
from modgraph.vocabulary import find_op, find_router

MOST_LISTED = 20  # members of a family, in a message
ADD: Any = ARITHMETIC["+"]
MULTIPLY: Any = ARITHMETIC["*"]


def evaluate(expression: ast.Expression, here: Here) -> Any:
    """The value of an expression; `POISON` after a mistake, which has then been told."""
    here.context.spend(1, expression.span)
    match expression:
        case ast.Literal():
            return expression.value
        case ast.Name():
            return _name(expression, here)
        case ast.ListOf():
            return _list(expression, here)
        case ast.TupleOf():
            return _tuple(expression, here)
        case ast.Pipeline():
            return _pipeline(expression, here)
        case ast.Call():
            return _call(expression, here)
        case ast.Unary():
            return _unary(expression, here)
        case ast.Binary():
            return _binary(expression, here)
        case ast.Range():
            ends = constant(expression.start, here, "a bound"), constant(expression.stop, here, "a bound")
            return _folded(expression, here, constants.range_of, *ends)
        case ast.Index():
            return _index(expression, here)
        case ast.Attribute():
            return _attribute(expression, here)
        case _:
            raise AssertionError(f"an expression of an unknown kind: {expression}")


def constant(expression: ast.Expression, here: Here, what: str) -> Any:
    """The value of an expression that must be a constant."""
    value = evaluate(expression, here)
    if isinstance(value, Entity) and not isinstance(value, Poison):
        here.tell(errors.NotConstant(span=expression.span, what=what, found=described(value)))
        return POISON
    return value


def tensor(expression: ast.Expression, here: Here, what: str) -> Tensor | Poison:
    """The value of an expression that must be one value of the network."""
    value = evaluate(expression, here)
    if isinstance(value, Tensor | Poison):
        return value
    here.tell(errors.NotValue(span=expression.span, what=what, found=described(value)))
    return POISON


def _name(expression: ast.Name, here: Here) -> Any:
    name = expression.name
    found = here.scope.find(name, is_value)
    if found is None:
        found = here.scope.find(name)
    if isinstance(found, BlockEntity):
        return Template((ast.Stage(span=expression.span, term=expression),), here.scope)
    if found is not None:
        here.context.observe(expression.span, found)
        return found
    op = find_op(name)
    if op is not None:
        return Template((ast.Stage(span=expression.span, term=expression),), here.scope)
    known = [*here.visible(expression.span), *constants.FUNCTIONS]
    suggestion = {"True": 'write "true"', "False": 'write "false"', "None": "leave it out"}.get(name)
    here.tell(errors.UnknownName(span=expression.span, name=name, suggestion=suggestion or did_you_mean(name, known)))
    return POISON


def _list(expression: ast.ListOf, here: Here) -> Any:
    items = []
    for item in expression.items:
        value = evaluate(item, here)
        if isinstance(value, Entity) and not isinstance(value, Poison):
            here.tell(errors.NotConstant(span=item.span, what="a member of a list", found=described(value)))
            value = POISON
        items.append(value)
    if any(value is POISON for value in items):
        return POISON
    return tuple(items) if _counted(tuple(items), expression, here) else POISON


def _counted(value: Any, expression: ast.Expression, here: Here) -> bool:
    """Count the work with a list, whose lists within may be long too; false, with a message, if it is too long."""
    count, depth = constants.extent(value)
    here.context.spend(count, expression.span)
    return not isinstance(_folded(expression, here, constants.check_extent, count, depth), Poison)


def _tuple(expression: ast.TupleOf, here: Here) -> Any:
    values = tuple(tensor(item, here, "an operand") for item in expression.items)
    return POISON if POISON in values else Several(values)


def _pipeline(expression: ast.Pipeline, here: Here) -> Any:
    head = evaluate(expression.head, here)
    match head:
        case Template():
            return Template((*head.stages, *expression.stages), here.scope)
        case ModuleEntity():
            first = ast.Stage(span=expression.head.span, term=expression.head)
            return Template((first, *expression.stages), here.scope)
        case Tensor() | Several() | Poison():
            return apply_stages(head, expression.stages, here)
        case Family() if head.of_values:
            return _family_pipeline(head, expression, here)
        case _:
            here.tell(errors.NotValue(span=expression.head.span, what="the head of a pipeline", found=described(head)))
            return POISON


def _family_pipeline(family: Family, expression: ast.Pipeline, here: Here) -> Any:
    """A family goes whole to concat, or to mean and sum, which run over its members."""
    members = tuple(family.members.values())
    first, *rest = expression.stages
    name = first.term.name if isinstance(first.term, ast.Name) else None
    if name not in ("mean", "sum"):
        return apply_stages(Several(members), expression.stages, here)
    value: Any = members[0]
    for member in members[1:]:
        if not isinstance(value, Poison):
            value = apply_op(Bound(ADD()), (value, member), first.span, here)
    if name == "mean" and not isinstance(value, Poison):
        value = apply_op(Bound(MULTIPLY(left=1 / len(members))), (value,), first.span, here)
    return apply_stages(value, tuple(rest), here)


def _attribute(expression: ast.Attribute, here: Here) -> Any:
    """A record of a router: `gate.gates`, of its only route, or a family of several."""
    target = evaluate(expression.target, here)
    if isinstance(target, Poison):
        return POISON
    if not isinstance(target, RouterEntity):
        found = f"this is {described(target)}"
        advice = "values are reached by name, members of a family by [ ]"
        here.tell(errors.WrongKind(span=expression.target.span, needed="a router", found=found, way_out=advice))
        return POISON
    records = target.router.record_names
    if expression.name not in records:
        suggestion = did_you_mean(expression.name, records, f"{target.router.name} keeps: {{known}}")
        here.tell(errors.UnknownName(span=expression.span, name=expression.name, suggestion=suggestion))
        return POISON
    found_records = _records_of(target, expression.name, expression.span, here)
    if len(found_records) == 1:
        return found_records[0]
    if not found_records:
        what = f'"{target.path}.{expression.name}"'
        advice = "route something by it first: x -> pool by router"
        found = "of a router that has routed nothing yet"
        here.tell(errors.NotValue(span=expression.span, what=what, found=found, way_out=advice))
        return POISON
    return Family(expression.name, dict(enumerate(found_records)))


def _call(call: ast.Call, here: Here) -> Any:
    if not isinstance(call.callee, ast.Name):
        here.tell(
            errors.WrongKind(
                span=call.callee.span,
                needed="a name",
                found="this is an expression",
                way_out="call ops by name",
            )
        )
        return POISON
    name = call.callee.name
    block = here.scope.find(name, is_block)
    if block is not None:
        return Template((ast.Stage(span=call.span, term=call),), here.scope)
    op = find_op(name)
    if op is None and name in constants.FUNCTIONS:
        return _constant_call(name, call, here)
    if op is None:
        return _unknown_call(call, name, here)
    given = arguments_of(call, here)
    operands = []
    while given and given[0].name is None and isinstance(given[0].value, Tensor | RouterEntity | Family):
        operands.append(given.pop(0))
    if not operands:
        if any(isinstance(argument.value, Poison) for argument in given):
            return POISON
        return Template((ast.Stage(span=call.span, term=call),), here.scope)
    settled = settle(op, given, here, call.span)
    if isinstance(settled, Poison):
        return POISON
    return _statistic(settled, [(each.value, each.span) for each in operands], call, here)


def _statistic(bound: Bound, operands: list[tuple[Any, Any]], call: ast.Call, here: Here) -> Any:
    """An op applied in function style: to values, or to routers, whose gates it takes."""
    tensors: list[Tensor] = []
    routers_only = True
    for value, span in operands:
        if isinstance(value, Tensor):
            tensors.append(value)
            routers_only = False
            continue
        members = value.members.values() if isinstance(value, Family) else (value,)
        for member in members:
            if not isinstance(member, RouterEntity):
                found = f"this is {described(value)}"
                here.tell(errors.WrongKind(span=span, needed="a value or a router", found=found))
                return POISON
            read = member.router.record_as(*bound.op.reads)
            tensors += _records_of(member, read.name, span, here) if read is not None else []
    if not tensors and routers_only:
        name = described(operands[0][0]).split('"')[1]
        here.tell(errors.EmptyFamily(span=call.span, name=name, statistic=bound.op.name))
        return 0.0
    return apply_op(bound, tuple(tensors), call.span, here)


def _records_of(router: RouterEntity, record: str, span: Span, here: Here) -> list[Tensor]:
    """A record of every route so far that uses a router; inside a scan, of this step and of those outside."""
    graphs = [here.graph] if here.scan is None else [here.scan.outer.graph, here.graph]
    results = [(graph, result) for graph in graphs for result in graph.records_of(router.path, record)]
    here.context.spend(RECORD * len(results), span)
    return [Tensor(result, graph.type_of(result)) for graph, result in results]


def _unknown_call(call: ast.Call, name: str, here: Here) -> Any:
    from modgraph.ops import Op
    from modgraph.routers import Router

    found = here.scope.find(name)
    if found is not None or find_router(name) is not None:
        what = described(found) if found is not None else f'the router "{name}"'
        advice = "a router is declared: router NAME = …" if found is None else "only ops and routers take arguments"
        here.tell(errors.WrongKind(span=call.span, needed="an op", found=f"this is {what}", way_out=advice))
        return POISON
    suggestion = did_you_mean(name, [*Op.registry, *constants.FUNCTIONS, *Router.registry])
    here.tell(errors.UnknownOp(span=call.callee.span, name=name, suggestion=suggestion))
    return POISON


def _constant_call(name: str, call: ast.Call, here: Here) -> Any:
    values = [constant(argument.value, here, f"an argument of {name}") for argument in call.arguments]
    if POISON in values:
        return POISON
    longest = max((len(value) for value in values if isinstance(value, tuple | range)), default=0)
    here.context.spend(min(longest, constants.LONGEST_LIST), call.span)
    return _folded(call, here, constants.call, name, values)


def _unary(expression: ast.Unary, here: Here) -> Any:
    value = evaluate(expression.operand, here)
    if isinstance(value, Tensor) and expression.operator == "-":
        return apply_op(Bound(MULTIPLY(left=-1.0)), (value,), expression.span, here)
    if isinstance(value, Entity):
        return _not_arithmetic(expression, (value,), here)
    return _folded(expression, here, constants.unary, expression.operator, value)


def _binary(expression: ast.Binary, here: Here) -> Any:
    left, right = evaluate(expression.left, here), evaluate(expression.right, here)
    if not isinstance(left, Entity) and not isinstance(right, Entity):
        if not _counted((left, right), expression, here):
            return POISON
        return _folded(expression, here, constants.binary, expression.operator, left, right)
    op: Any = ARITHMETIC.get(expression.operator)
    values = (left, right)
    plain = all(isinstance(value, Tensor) or type(value) in (int, float) for value in values)
    if op is None or not plain:
        return _not_arithmetic(expression, values, here)
    constants_given = {
        side: float(value)
        for side, value in zip(("left", "right"), values, strict=True)
        if not isinstance(value, Tensor)
    }
    tensors = tuple(value for value in values if isinstance(value, Tensor))
    return apply_op(Bound(op(**constants_given)), tensors, expression.span, here)


def _not_arithmetic(expression: Any, values: tuple[Any, ...], here: Here) -> Poison:
    culprit = next((value for value in values if isinstance(value, Entity)), values[0])
    if POISON not in values:
        culprit = next((v for v in values if isinstance(v, Entity) and not isinstance(v, Tensor)), culprit)
        way_out = ""
        if isinstance(culprit, Template):
            way_out = "an op is applied with an arrow: x -> op; put the pipeline in parentheses"
        found = described(culprit)
        here.tell(
            errors.Arithmetic(
                span=expression.span,
                problem=f'"{expression.operator}" cannot be taken of {found}',
                way_out=way_out,
            )
        )
    return POISON


def _index(expression: ast.Index, here: Here) -> Any:
    target = evaluate(expression.target, here)
    index = constant(expression.index, here, "an index")
    if isinstance(target, Poison) or isinstance(index, Poison):
        return POISON
    if isinstance(target, Family):
        if index in target.members:
            return target.members[index]
        known = [shown_briefly(key) for key in islice(target.members, MOST_LISTED)]
        listed = ", ".join(known) + (", …" if len(target.members) > MOST_LISTED else "")
        problem = f'"{target.name}" has no member {shown_briefly(index)}'
        here.tell(errors.BadIndex(span=expression.span, problem=problem, way_out=f"it has: {listed or 'none'}"))
        return POISON
    if isinstance(target, Entity):
        problem = f"{described(target)} has no members"
        way_out = "a token is taken with: -> select(0)" if isinstance(target, Tensor) else ""
        here.tell(errors.BadIndex(span=expression.span, problem=problem, way_out=way_out))
        return POISON
    return _folded(expression, here, constants.item_of, target, index)


def _folded(expression: ast.Tree, here: Here, function: Any, *values: Any) -> Any:
    """A constant computed from constants, its problems told."""
    if POISON in values:
        return POISON
    try:
        return function(*values)
    except ConstantProblem as problem:
        kind = errors.BadIndex if isinstance(expression, ast.Index) else errors.Arithmetic
        here.tell(kind(span=expression.span, problem=problem.problem, way_out=problem.way_out))
        return POISON
