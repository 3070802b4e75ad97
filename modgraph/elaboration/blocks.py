"""Blocks: definitions that each use instantiates, and what they require of their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from modgraph.declare import shown_briefly, shown_value
from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import constants, errors
from modgraph.elaboration.bodies import BlockCall
from modgraph.elaboration.calls import CallArgument, given, label_of
from modgraph.elaboration.context import BLOCK
from modgraph.elaboration.entities import (
    POISON,
    BlockEntity,
    BlockUse,
    Entity,
    Family,
    Poison,
    Tensor,
    TensorTuple,
    described,
    shown_given,
)
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.site import Site
from modgraph.ops.compared import MIRRORED
from modgraph.syntax import ast

MOST_NESTED = 40  # uses of a definition inside each other, through arguments


def use_block(block: BlockEntity, arguments: list[CallArgument], site: Site, span: Span) -> BlockUse | Poison:
    """A block with its arguments bound to its parameters; told mistakes give poison."""
    if id(block.definition) in site.defining or site.context.nested(block.definition) >= MOST_NESTED:
        return site.tell(errors.RecursiveBlock(span=span, name=block.definition.name))
    names = [parameter.name for parameter in block.definition.parameters]
    site.context.spend(len(names), span)
    values: dict[str, Any] = {}
    spans: dict[str, Span] = {}
    label: Any = None
    positional = iter(names)
    for argument in arguments:
        if argument.name == "name" and "name" not in names:
            label = label_of(argument, site)
            continue
        name = argument.name or next(positional, None)
        value = _argument(block, name, argument, values, site)
        if name is not None:
            values[name], spans[name] = value, argument.given or argument.span
    scope = Scope(outer=block.scope)
    inside = _of_definition(block, scope, site)
    defaults: dict[str, Any] = {}
    for parameter in block.definition.parameters:
        name = parameter.name
        if name not in values:
            values[name] = defaults[name] = _default(block, parameter, inside, span)
        elif block.definition.keyword == "router":
            defaults[name] = POISON if parameter.default is None else given(parameter.default, inside)
            values[name] = _of_kind(block, name, defaults[name], values[name], spans, inside)
        scope.declare(name, values[name])
    scope.arguments |= spans
    require_of_arguments(block.definition, replace(inside, call=BlockCall(block.definition.name, None, span=span)))
    sound = POISON not in scope.names.values() and POISON not in values.values() and label is not POISON
    return BlockUse(block, values, label, spans, defaults) if sound else POISON


def _of_definition(block: BlockEntity, scope: Scope, site: Site) -> Site:
    """Where the defaults of a definition stand: in its own text, which may not use it."""
    call = BlockCall(block.definition.name, None, defining=(*site.defining, id(block.definition)))
    return replace(site, scope=scope, call=call)


def _argument(block: BlockEntity, name: str | None, argument: CallArgument, values: dict[str, Any], site: Site) -> Any:
    callee = block.definition.name
    names = [parameter.name for parameter in block.definition.parameters]
    if name is None:
        known = ", ".join(names) or "none"
        site.tell(errors.TooManyArguments(span=argument.span, callee=callee, most=len(names), names=known))
    elif name not in names:
        suggestion = did_you_mean(name, names, f"{callee} takes: {{known}}")
        site.tell(errors.UnknownArgument(span=argument.span, callee=callee, name=name, suggestion=suggestion))
    elif name in values:
        site.tell(errors.DuplicateArgument(span=argument.span, callee=callee, name=name))
    elif _is_of_network(argument.value):
        found, way_out = described(argument.value), f"a value is sent in, as an input of its own: (a, b) -> {callee}"
        facts: Any = {"what": f"{name} of {callee}", "found": found, "way_out": way_out}
        site.tell(errors.NotConstant(span=argument.span, **facts))
    else:
        return argument.value
    return POISON


def _is_of_network(value: Any) -> bool:
    """Whether it is a value, or several, and no constant or callable that an argument may be."""
    return isinstance(value, Tensor | TensorTuple) or (isinstance(value, Family) and value.of_values)


def _of_kind(block: BlockEntity, name: str, default: Any, value: Any, spans: dict[str, Span], site: Site) -> Any:
    """The argument of a router, which is of the kind of its default: a constant of one kind, or a callable."""
    if isinstance(default, Poison) or isinstance(value, Poison):
        return value
    if isinstance(default, Entity) and isinstance(value, Entity):
        return value
    if constants.same_kind(default, value):
        return float(value) if isinstance(default, float) else value
    wanted = "something to be applied" if isinstance(default, Entity) else constants.kind_of(default)
    problem = f"must be {wanted}, not {shown_given(value)}"
    shown = str(default) if isinstance(default, Entity) else shown_value(default)
    facts: Any = {"callee": block.definition.name, "problem": problem, "way_out": f"its default is {name}={shown}"}
    return site.tell(errors.NotRequired(span=spans[name], name=name, **facts))


def _default(block: BlockEntity, parameter: ast.Parameter, site: Site, span: Span) -> Any:
    if parameter.default is not None:
        return given(parameter.default, site)
    meaning = "a parameter of the block without a default"
    callee = block.definition.name
    return site.tell(errors.MissingArgument(span=span, callee=callee, name=parameter.name, meaning=meaning))


def apply_block(use: BlockUse, tensors: tuple[Tensor, ...], span: Span, site: Site) -> Any:
    """The outputs of a block's body, elaborated with these operands as its inputs."""
    definition = use.block.definition
    context = site.context
    node, owner = site.naming.next(definition.name, use.label)
    context.shorter[node] = site.naming.shorter(node)
    scope = Scope(owner, node, use.block.scope, frozen=site.scope.frozen)
    scope.declare_parameters(use.parameters, use.spans)
    call = BlockCall(definition.name, list(tensors), span=span, defining=(*site.defining, id(definition)))
    context.spend(BLOCK + len(definition.parameters) + 2 * len(tensors), span)
    naming = Naming(node, owner, scope)
    with context.using("block", definition.name, naming, span, definition):
        replace(site, scope=scope, naming=naming, call=call).elaborate(definition.body)
    if call.taken != len(tensors):
        return site.tell(errors.BlockOperands(span=span, name=definition.name, inputs=call.taken, given=len(tensors)))
    return _results(call, definition, site)


def _results(call: BlockCall, definition: ast.Definition, site: Site) -> Any:
    """One result or several: outputs, and families of those that are members of one."""
    if POISON in call.outputs:
        return POISON
    if not call.outputs:
        if not site.context.report.errors:
            site.tell(errors.NoOutput(span=definition.name_span, name=definition.name, kind="block"))
        return POISON
    return call.outputs[0] if len(call.outputs) == 1 else TensorTuple(tuple(call.outputs))


BOUNDS = {
    ">=": ("must be at least {}", "write {name}={}"),
    ">": ("must be more than {}", "choose a number above {}"),
    "<=": ("must be at most {}", "write {name}={}"),
    "<": ("must be less than {}", "choose a number below {}"),
    "==": ("must be {}", "write {name}={}"),
    "!=": ("must be other than {}", "choose something else"),
}


def elaborate_require(statement: ast.Require, site: Site) -> None:
    """Tell what does not hold where the parameter was given; nothing follows from that parameter."""
    for condition in _parts(statement):
        _require(condition, site)


def require_of_arguments(definition: ast.Definition, site: Site) -> None:
    """What a definition asks of its parameters alone, which stand in the scope of the site."""
    known = {parameter.name for parameter in definition.parameters}
    asked = [each for each in definition.body.statements if isinstance(each, ast.Require)]
    for condition in (part for each in asked for part in _parts(each)):
        if known.issuperset(_names(condition)):
            _require(condition, site)


def _require(condition: ast.Expression, site: Site) -> None:
    holds = site.constant(condition, "what is required")
    if holds is True or isinstance(holds, Poison):
        return
    if holds is not False:
        problem = f"a condition is true or false, not {shown_briefly(holds)}"
        site.tell(errors.Arithmetic(span=condition.span, problem=problem, way_out="compare it: x == 1"))
        return
    own = site.scope.body.names
    names = [name for name in _names(condition) if not isinstance(own.get(name, POISON), Entity)]
    site.tell(_broken(condition, names, site))
    own.update(dict.fromkeys(names, POISON))


def _parts(statement: ast.Require) -> Iterator[ast.Expression]:
    """The conditions that all must hold, in order."""
    pending = [statement.condition]
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Binary) and each.operator == "and":
            pending += each.right, each.left
        else:
            yield each


def _names(condition: ast.Expression) -> list[str]:
    """What a condition speaks of, in order."""
    found = dict.fromkeys(tree.name for tree in ast.walk(condition) if isinstance(tree, ast.Name))
    return [name for name in found if name not in constants.FUNCTIONS]


def _broken(condition: ast.Expression, names: list[str], site: Site) -> errors.NotRequired:
    call = site.call
    given = [span for span in map(site.scope.given_at, names) if span is not None]
    span = next(iter(given), call.span if call is not None else None) or condition.span
    callee = call.name if call is not None else site.graph.name
    operator = condition.operator if isinstance(condition, ast.Binary) else ""
    if isinstance(condition, ast.Binary) and operator in (*BOUNDS, "in"):
        left, right = condition.left, condition.right
        if operator in BOUNDS and not isinstance(left, ast.Name):
            left, right, operator = right, left, MIRRORED[operator]
        made = not isinstance(right, ast.Name) and any(name in names for name in _names(right))
        if isinstance(left, ast.Name) and not made:  # of a parameter: each of the two may be what is wrong
            value, bound = site.evaluate(left), site.evaluate(right)
            problem, advice = _out_of_bounds(left.name, value, operator, bound)
            return errors.NotRequired(span=span, callee=callee, name=left.name, problem=problem, way_out=advice)
    written = condition.span.text
    written += ")" * (written.count("(") - written.count(")"))  # a group's span is that of what stands in it
    shown = ", ".join(f"{name}={shown_briefly(site.scope.find(name))}" for name in names) or "not so"
    is_, it = ("are", "one of them") if len(names) > 1 else ("is", "it")
    facts: Any = {
        "problem": f"must be such that {written}, and {is_} {shown}",
        "way_out": f"change {it} until {written}",
    }
    return errors.NotRequired(span=span, callee=callee, name=" and ".join(names) or "this", **facts)


def _out_of_bounds(name: str, value: Any, operator: str, bound: Any) -> tuple[str, str]:
    """What a parameter must be, and how to mend it."""
    if operator in BOUNDS:
        problem, advice = (each.format(shown_briefly(bound), name=name) for each in BOUNDS[operator])
        return f"{problem}, not {shown_briefly(value)}", advice
    problem = f"must be one of {shown_briefly(tuple(bound))[1:-1]}, not {shown_briefly(value)}"
    words = [each for each in bound if isinstance(each, str)]
    return problem, did_you_mean(str(value), words, f"write {name}={shown_value(next(iter(bound), 0))}")
