"""Blocks: definitions that each use instantiates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.declare import shown_value
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
from modgraph.elaboration.requirements import require_of_arguments
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.site import Site
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
