"""Instantiates definitions of blocks and routers, and checks the requirements on their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modgraph.declare import MISSING, Setting, format_briefly, format_value
from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import constants, entities, errors
from modgraph.elaboration.calls import CallArgument, evaluate_argument, match_arguments, read_label, report_torch_call
from modgraph.elaboration.context import BLOCK, BlockCall
from modgraph.elaboration.demands import elaborate_demand
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, BlockUse, Entity, Poison, Tensor, TensorTuple, describe
from modgraph.elaboration.operands import restore_axes
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.torch_calls import Callee
from modgraph.frozen import replace_fields
from modgraph.ops.compared import MIRRORED
from modgraph.prelude import find_written, is_prelude
from modgraph.syntax import ast

MOST_NESTED = 40  # uses of a definition inside each other, through arguments


def use_block(
    block: entities.BlockEntity, arguments: list[CallArgument], elaborator: Elaborator, span: Span
) -> BlockUse | Poison:
    """Bind the arguments of a block to its parameters; poison after a reported mistake."""
    definition, callee = block.definition, block.definition.name
    if id(definition) in elaborator.defining or elaborator.context.active_blocks.count(id(definition)) >= MOST_NESTED:
        return elaborator.report(errors.RecursiveBlock(span=span, name=callee))
    elaborator.context.spend(len(definition.parameters), span)
    is_built_in = is_prelude(definition.span.source)
    if is_built_in and _report_torch_call(definition, arguments, elaborator, span):
        return POISON
    has_kinds = is_built_in or definition.keyword == "router"
    values, spans, label = _bind_arguments(definition, arguments, elaborator)
    scope = Scope(outer=block.scope)
    own_text = BlockCall(callee, None, defining=(*elaborator.defining, id(definition)))  # may not use itself
    inside = replace_fields(elaborator, scope=scope, call=own_text)
    defaults: dict[str, Any] = {}
    for parameter in definition.parameters:
        name, default = parameter.name, POISON
        is_given = name in values
        if parameter.default is not None and (has_kinds or not is_given):
            default = evaluate_argument(parameter.default, inside)
        elif not is_given:
            meaning = "a parameter without a default"
            inside.report(errors.MissingArgument(span=span, callee=callee, name=name, meaning=meaning))
        if has_kinds or not is_given:
            defaults[name] = default
            values[name] = _check_kind(callee, name, default, values[name], spans, inside) if is_given else default
        scope.declare(name, values[name])
    scope.arguments |= spans
    _require_all(definition, replace_fields(inside, call=BlockCall(callee, None, span=span)))
    sound = POISON not in scope.names.values() and POISON not in values.values() and label is not POISON
    return BlockUse(block, values, label, spans, defaults) if sound else POISON


def _report_torch_call(
    definition: ast.Definition, arguments: list[CallArgument], elaborator: Elaborator, span: Span
) -> bool:
    """Report a call of a built-in block with the arguments of torch's layer; return whether it is one."""
    written = find_written(definition.name)
    if written is None or not written.torch_arguments:
        return False
    defaults = {each.name: each.default and elaborator.evaluate(each.default) for each in definition.parameters}
    settings = {
        name: Setting(name, (int,) if value is None else (type(value),), MISSING if value is None else value, {})
        for name, value in defaults.items()
    }
    ours = [each for each in arguments if each.name != "name"]
    return report_torch_call(Callee(definition.name, settings, written.torch_arguments), ours, elaborator, span)


def _bind_arguments(
    definition: ast.Definition, arguments: list[CallArgument], elaborator: Elaborator
) -> tuple[dict[str, Any], dict[str, Span], Any]:
    """Return the values and spans of the arguments by parameter, and the label of `name=` unless it is a parameter."""
    callee, names = definition.name, [parameter.name for parameter in definition.parameters]
    values: dict[str, Any] = {}
    spans: dict[str, Span] = {}
    labels = [each for each in arguments if each.name == "name" and "name" not in names]
    others = [each for each in arguments if each.name != "name" or "name" in names]
    for name, argument in match_arguments(others, callee, names, values, elaborator):
        value = argument.value
        if isinstance(value, Tensor | TensorTuple) or (isinstance(value, entities.Family) and value.of_values):
            way_out = f"send the value in as another input: (a, b) -> {callee}"
            facts: Any = {"what": f"{name} of {callee}", "found": describe(value), "way_out": way_out}
            value = elaborator.report(errors.NotConstant(span=argument.span, **facts))
        if name:
            values[name], spans[name] = value, argument.given or argument.span
    return values, spans, next(reversed([read_label(each, elaborator) for each in labels]), None)


def _check_kind(
    callee: str, name: str, default: Any, value: Any, spans: dict[str, Span], elaborator: Elaborator
) -> Any:
    """Check that the argument of a router has the kind of its default: a constant of one kind, or a callable."""
    if isinstance(default, Poison) or isinstance(value, Poison):
        return value
    if isinstance(default, Entity) and isinstance(value, Entity):
        return value
    if constants.has_kind(default, value):
        return float(value) if isinstance(default, float) else value
    wanted = "an op or a block" if isinstance(default, Entity) else constants.describe_kind(default)
    printed = str(default) if isinstance(default, Entity) else format_value(default)
    problem, way_out = (
        f"must be {wanted}, not {entities.format_argument(value)}",
        f"write it like its default: {name}={printed}",
    )
    return elaborator.report(
        errors.NotRequired(span=spans[name], name=name, callee=callee, problem=problem, way_out=way_out)
    )


def apply_block(use: BlockUse, tensors: tuple[Tensor, ...], span: Span, elaborator: Elaborator) -> Any:
    """Elaborate the body of a block with these operands, and return its outputs; a family is one output."""
    definition, context = use.block.definition, elaborator.context
    inside, call = enter_body(use, elaborator.naming.next(definition.name, use.label), tensors, span, elaborator)
    context.spend(BLOCK + len(definition.parameters) + 2 * len(tensors), span)
    context.uses.append((span, None))
    with context.enter_use("block", definition.name, inside.naming, span, definition):
        inside.elaborate(definition.body)
        named = {*call.named.values()}
        call.outputs = [restore_axes(each, call.apart, call.naming, inside, named) for each in call.outputs]
    context.uses.pop()
    if inputs := call.explain_count(len(tensors)):
        return elaborator.report(
            errors.BlockOperands(span=span, name=definition.name, inputs=inputs, given=len(tensors))
        )
    if not call.outputs and not context.report.errors:
        elaborator.report(errors.NoOutput(span=definition.name_span, name=definition.name, kind="block"))
    if not call.outputs or POISON in call.outputs:
        return POISON
    return call.outputs[0] if len(call.outputs) == 1 else TensorTuple(tuple(call.outputs))


def enter_body(
    use: BlockUse,
    names: tuple[str, str],
    operands: tuple[Tensor, ...],
    span: Span,
    elaborator: Elaborator,
    frozen: bool = False,
) -> tuple[Elaborator, BlockCall]:
    """Return an elaborator and a call for the body of a definition; `names` are those of its nodes and its weights."""
    definition, (node, owner) = use.block.definition, names
    elaborator.context.shorter[node] = elaborator.naming.shorter(node)
    scope = Scope(owner, node, use.block.scope, frozen=frozen or elaborator.scope.frozen)
    scope.names |= use.parameters
    scope.arguments |= use.spans
    call = BlockCall(definition.name, list(operands), span=span, defining=(*elaborator.defining, id(definition)))
    if definition.keyword == "block":
        call.axis_words = definition.named_axes
    return replace_fields(elaborator, scope=scope, naming=Naming(node, owner, scope), call=call), call


# ---------------------------------------------------------------- a requirement of parameters

BOUNDS = {
    ">=": ("must be at least {}", "write {name}={}"),
    ">": ("must be greater than {}", "choose a number above {}"),
    "<=": ("must be at most {}", "write {name}={}"),
    "<": ("must be less than {}", "choose a number below {}"),
    "==": ("must be {}", "write {name}={}"),
    "!=": ("must not be {}", "choose another value"),
}


def elaborate_require(statement: ast.Require, elaborator: Elaborator) -> None:
    """Check the requirements of a statement; report a failure at the argument, and poison the parameter."""
    for condition in _split_condition(statement.condition):
        if not elaborate_demand(condition, elaborator):
            _require(condition, elaborator)


def _require_all(definition: ast.Definition, elaborator: Elaborator) -> None:
    """Check the requirements of a definition that depend on its parameters alone."""
    known = {parameter.name for parameter in definition.parameters}
    asked = [each.condition for each in definition.body.statements if isinstance(each, ast.Require)]
    for condition in (part for each in asked for part in _split_condition(each)):
        if known.issuperset(_names(condition)):
            _require(condition, elaborator)


def _split_condition(condition: ast.Expression) -> Iterator[ast.Expression]:
    """Split a condition at `and`."""
    if isinstance(condition, ast.Binary) and condition.operator == "and":
        yield from _split_condition(condition.left)
        yield from _split_condition(condition.right)
    else:
        yield condition


def _names(condition: ast.Expression) -> list[str]:
    """List the names in a condition, in order."""
    found = dict.fromkeys(tree.name for tree in ast.walk(condition) if isinstance(tree, ast.Name))
    return [name for name in found if name not in constants.FUNCTIONS]


def _require(condition: ast.Expression, elaborator: Elaborator) -> None:
    holds = elaborator.evaluate_constant(condition, "a requirement")
    if holds is True or isinstance(holds, Poison):
        return
    if holds is not False:
        problem = f"a condition must be true or false, not {format_briefly(holds)}"
        elaborator.report(errors.Arithmetic(span=condition.span, problem=problem, way_out="compare it: x == 1"))
        return
    own = elaborator.scope.body.names
    names = [name for name in _names(condition) if not isinstance(own.get(name, POISON), Entity)]
    given = next((span for span in map(elaborator.scope.find_argument, names) if span is not None), None)
    span = given or (None if elaborator.call is None else elaborator.call.span) or condition.span
    callee = elaborator.graph.name if elaborator.call is None else elaborator.call.name
    name, problem, way_out = _explain_failure(condition, names, elaborator)
    elaborator.report(errors.NotRequired(span=span, callee=callee, name=name, problem=problem, way_out=way_out))
    own.update(dict.fromkeys(names, POISON))


def _explain_failure(condition: ast.Expression, names: list[str], elaborator: Elaborator) -> tuple[str, str, str]:
    """Explain a failed condition on some parameters: the name at fault, the problem, and the way out."""
    operator = condition.operator if isinstance(condition, ast.Binary) else ""
    if isinstance(condition, ast.Binary) and operator in (*BOUNDS, "in"):
        left, right = condition.left, condition.right
        if operator in BOUNDS and not isinstance(left, ast.Name):
            left, right, operator = right, left, MIRRORED[operator]
        computed = not isinstance(right, ast.Name) and any(name in names for name in _names(right))
        if isinstance(left, ast.Name) and not computed:  # with two parameters, either may be wrong
            name, value, bound = left.name, elaborator.evaluate(left), elaborator.evaluate(right)
            if operator in BOUNDS:
                problem, way_out = (each.format(format_briefly(bound), name=name) for each in BOUNDS[operator])
            elif isinstance(bound, range) and bound:
                nearest = bound[-1] if type(value) is int and value > bound[-1] else bound[0]
                problem, way_out = f"must be a whole number from {bound[0]} to {bound[-1]}", f"write {name}={nearest}"
            else:
                problem = f"must be one of {format_briefly(tuple(bound))[1:-1]}"
                words = [each for each in bound if isinstance(each, str)]
                way_out = did_you_mean(str(value), words, f"write {name}={format_value(next(iter(bound), 0))}")
            return name, f"{problem}, not {format_briefly(value)}", way_out
    written = condition.span.text
    written += ")" * (written.count("(") - written.count(")"))  # the span of a group leaves out its parentheses
    axes = [name for name in _names(condition) if name in elaborator.axes and name not in names]
    known = {name: elaborator.axes[name].size for name in axes} | {name: elaborator.scope.find(name) for name in names}
    printed = ", ".join(f"{name}={format_briefly(value)}" for name, value in known.items()) or "not so"
    problem = f"must satisfy {written}, not {printed}"
    return " and ".join(names) or "this", problem, f"change {'one of them' if len(names) > 1 else 'it'}"
