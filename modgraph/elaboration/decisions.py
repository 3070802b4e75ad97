"""Elaborates what is specific to the body of a router: names of axes, records, results, and reads of records.

In the body every token axis has a name: a plain axis is named after the use of the router, and a value without an axis
that the body names gets one of size 1. The results of the body lose these names; records keep them until they are read.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from modgraph.declare import RANKING, ROLES, Role, record_as
from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import entities, errors
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.context import RECORD, Decision
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, Family, OpUse, Poison, PoolEntity, RouterEntity, Tensor, describe
from modgraph.elaboration.messages import broadcast_to_tokens
from modgraph.elaboration.operands import restore_axes
from modgraph.elaboration.scope import join
from modgraph.ir import find_draw
from modgraph.ops import Op
from modgraph.ops.along_axis import Sum
from modgraph.ops.axes import NewAxis
from modgraph.ops.elementwise import MaskPadding
from modgraph.ops.shape import Rename
from modgraph.prelude import is_prelude
from modgraph.syntax import ast
from modgraph.types import Axis, Shape, format_shape, may_meet, shapes_meet

WAYS_OUT: dict[type, str] = {
    entities.ModuleEntity: "declare a weight to read it: weight w: float[3, 8] = normal(0.02) y = (x, w) -> contract",
    PoolEntity: "name the router that chooses among its modules: r.gates",
    Tensor: "apply an op to the value: x -> transpose",
    Family: "take a member of the family: NAME[0]",
}
IN_MODULE = "compute the weights in the module: w = x -> linear(POOL) -> softmax y = x -> POOL by w"


def evaluate_attribute(expression: ast.Attribute, elaborator: Elaborator) -> Any:
    """Evaluate a record of a router, `gate.gates`: of its only route, or a family for several routes."""
    target, name = elaborator.evaluate(expression.target), expression.name
    if isinstance(target, Poison):
        return POISON
    if not isinstance(target, RouterEntity):
        way_out = next((advice for kind, advice in WAYS_OUT.items() if isinstance(target, kind)), WAYS_OUT[Tensor])
        facts: Any = {"found": describe(target), "name": name, "way_out": way_out}
        return elaborator.report(errors.NoPart(**elaborator.locate(expression.target), **facts))
    records = [each.name for each in target.router.records]
    if not elaborator.region and name not in records:
        suggestion = did_you_mean(name, records, f"{target.router.name} records: {{known}}")
        return elaborator.report(errors.UnknownName(span=expression.span, name=name, suggestion=suggestion))
    found_records = _find_records(target, name, expression.span, elaborator)
    if isinstance(found_records, Poison):
        return POISON
    if found_records:
        return found_records[0] if len(found_records) == 1 else Family(name, dict(enumerate(found_records)))
    if elaborator.context.incomplete:
        return POISON
    found, way_out = (
        "a record of a router that has routed nothing yet",
        "route something by it first: x -> pool by router",
    )
    return elaborator.report(
        errors.NotValue(span=expression.span, what=f'"{target.path}.{name}"', found=found, way_out=way_out)
    )


def apply_statistic(bound: OpUse, operands: list[tuple[Any, Any]], call: ast.Call, elaborator: Elaborator) -> Any:
    """Apply an op in function style to values, or to routers, whose gates it takes."""
    tensors: list[Tensor] = []
    routers_only = True
    for value, span in operands:
        if isinstance(value, Tensor):
            tensors.append(value)
            routers_only = False
            continue
        members = value.members.values() if isinstance(value, Family) else (value,)
        if POISON in members:
            return POISON
        for member in members:
            if not isinstance(member, RouterEntity):
                advice = "name the router that chooses among its modules" if isinstance(member, PoolEntity) else ""
                return elaborator.refuse(span, "a value or a router", describe(value), advice)
            read = record_as(member.router.records, *bound.op.reads)
            records = _find_records(member, "" if read is None else read.name, span, elaborator)
            if isinstance(records, Poison):
                return POISON
            tensors += records
    if not tensors and routers_only:
        if elaborator.context.incomplete:
            return POISON
        name = describe(operands[0][0]).split('"')[1]
        elaborator.report(errors.EmptyFamily(span=call.span, name=name, statistic=bound.op.name))
        return 0.0
    return apply_op(bound, tuple(tensors), call.span, elaborator)


def _find_records(router: RouterEntity, record: str, span: Span, elaborator: Elaborator) -> list[Any] | Poison:
    """List a record of every route of a router so far, with the axes of the surroundings.

    Inside a scan these are the routes of this step and those outside. Modules of pools cannot read records.
    """
    if elaborator.region:
        what = f'a record of the router "{router.path}"'
        return elaborator.report(errors.NotInRegion(span=span, what=what, way_out=IN_MODULE))
    found = [(graph, each) for graph in elaborator.graphs for each in graph.decisions(router.path)] if record else []
    elaborator.context.spend(RECORD * len(found), span)
    records = []
    for graph, each in found:
        value = Tensor(each.results[record], graph.type_of(each.results[record]))
        decision: Decision | None = elaborator.context.decisions.get(each.name)
        if decision is not None:  # else the router is one of Python
            read, before = (id(elaborator.graph), value.result), len(elaborator.graph)
            if read not in decision.read:
                decision.read[read] = unbind(replace(value, span=span), decision, elaborator)
                new = islice(elaborator.graph, before, None)
                elaborator.context.unbound |= {node.name: each.name for node in new if each.name in elaborator.graph}
            known = decision.read[read]
            value = replace(known, span=None) if isinstance(known, Tensor) else known
        records.append(value)
    return records


def bind_input(given: Tensor | Poison, statement: ast.Input, elaborator: Elaborator) -> Tensor | Poison:
    """Bind an input of a body to an operand; a router's input gets the axes that its type names."""
    decision = elaborator.decision
    if isinstance(given, Poison) or decision is None:
        return given
    rank = len(given.type.shape)
    words = [axis.name if isinstance(axis, ast.Name) else "" for axis in reversed(statement.type.axes)]
    first = decision.routed is None
    words += [""] * (decision.message_rank * first - len(words))
    words += [f"outer{at}" for at in range(rank - len(words))]
    for at, word in enumerate(words, start=1):
        if word and not isinstance(given, Poison):
            given = _name_axis(given, -at, word, elaborator)
    if first and isinstance(given, Tensor):
        decision.routed = given
    return given


def _name_axis(given: Tensor, place: int, word: str, elaborator: Elaborator) -> Tensor | Poison:
    """Give the axis at a place of an input the body's name for it, if it is plain or that of the modules."""
    decision = elaborator.decision
    assert decision is not None and elaborator.call is not None
    lacks = len(given.type.shape) < -place
    before = Axis(1) if lacks else given.type.shape[place]
    known = word in decision.words
    if known if lacks else (not before.name or before == decision.modules) and (place < -1 or known):
        axis = Axis(before.size, join(elaborator.region, join(elaborator.naming.node, word)))
        op = NewAxis(length=1, axis=axis.name, at=place) if lacks else Rename(names=(str(place), axis.name))
        given = _apply(op, given, decision, elaborator)
        elaborator.call.axes[word] = decision.named[word] = axis
        decision.lacking |= {axis} if lacks else set()
        decision.of_modules |= {axis} if before.name else set()
    length = elaborator.call.axes[word].size if word in elaborator.call.axes else None
    if length is not None and word not in elaborator.scope.names:
        elaborator.scope.declare(word, length)
    return given


def elaborate_record(statement: ast.Record, elaborator: Elaborator) -> None:
    """Elaborate the records of a router; in a `repeat` there is one for each round."""
    decision = elaborator.decision
    if decision is None:
        elaborator.report(errors.RecordOutsideRouter(span=statement.span))
        return
    for item in statement.items:
        value = item.value or ast.Name(span=item.span, name=item.name)
        found = elaborator.with_naming(elaborator.scope.next_binding(f"record.{item.name}")).evaluate_tensor(
            value, "a record"
        )
        role = entities.find_role(item)
        if role is None:
            suggestion = did_you_mean(str(item.role), ROLES, "roles are: {known}")
            found = elaborator.report(errors.UnknownRole(span=item.span, name=str(item.role), suggestion=suggestion))
        decision.records.setdefault(item.name, []).append((found, role))
        decision.roles.add(role)


def unbind(value: Tensor | Poison, decision: Decision, elaborator: Elaborator) -> Any:
    """Remove the names that a router's body gave to axes from a value."""
    for axis in decision.named.values():
        if isinstance(value, Tensor) and axis in value.type.shape:
            name = decision.find_outer_name(axis, value.type.shape)
            op = Sum(axis=axis.name) if axis in decision.lacking else Rename(names=(axis.name, name))
            value = _apply(op, value, decision, elaborator)
    return restore_axes(value, decision.apart, decision.naming, elaborator)


def record(value: Any, role: Role, token_axes: Shape, modules: Axis, elaborator: Elaborator) -> Any:
    """Turn a record into the form of its role: a number for each token and module, and for each slot if there are
    slots.

    A record without token axes gets one token. Axes keep the names of the body. A value that is equal for all tokens is
    broadcast, except for a novelty and for a choice that was sampled once for several tokens, whose probability counts
    once.
    """
    decision = elaborator.decision
    assert decision is not None
    slots = role is Role.SLOTS or (role in RANKING and Role.SLOTS in decision.roles)
    over_modules = isinstance(value, Tensor) and value.type.shape[-1:] == (decision.modules,)
    for_each = (
        over_modules and role not in (Role.OTHER, Role.NOVELTY) and find_draw(value.result, elaborator.graph) is None
    )
    if for_each and decision.routed is not None:
        at_use = elaborator.with_naming(decision.naming)
        repeated = broadcast_to_tokens(value, 1 + slots, decision.routed, decision.token_axes, value.span, at_use)
        value = value if repeated is None else repeated
    for axis in decision.lacking:
        if isinstance(value, Tensor) and axis in value.type.shape:
            value = _apply(Sum(axis=axis.name), value, decision, elaborator)
    if role is not Role.OTHER and isinstance(value, Tensor):
        value = _check_record_shape(value, role, token_axes, modules, slots, decision, elaborator)
    return mask_padding(value, elaborator)


def _check_record_shape(
    value: Tensor, role: Role, token_axes: Shape, modules: Axis, slots: bool, decision: Decision, elaborator: Elaborator
) -> Any:
    """Check that a record has the axes of its role, by their outer names, and add a missing token axis."""
    shape = decision.rename_shape(value.type.shape)
    remaining = iter(token_axes)
    has_token_axes = all(any(may_meet(axis, each) for each in remaining) for axis in shape[:-1])  # in this order
    if role is Role.NOVELTY and shape[-1:] == (modules,) and has_token_axes:
        return value
    if not token_axes and len(shape) == 1 + slots:
        value = _apply(NewAxis(length=1, axis="", at=-2 - slots), value, decision, elaborator)
    outer = token_axes or (Axis(1),)
    kept = decision.rename_shape(value.type.shape) if isinstance(value, Tensor) else ()
    if kept[-1:] == (modules,) and shapes_meet(kept[: len(kept) - 1 - slots], outer):
        return value
    if value.span is not None and is_prelude(value.span.source) and len(kept) > len(outer) + 1 + slots:
        no_vectors: Any = {"does": "give more than vectors", "way_out": "let them end in a vector: -> flatten"}
        return elaborator.report(
            errors.DecidesByVectors(span=value.span, router=decision.router, pool=modules.name, **no_vectors)
        )
    wanted = format_shape((*outer, *((Axis(None, "slots"),) if slots else ()), modules))
    facts: Any = {"role": role.name.lower(), "found": str(value.type.with_shape(kept)), "wanted": wanted}
    return elaborator.report(errors.RecordShape(span=value.span, **facts))


def mask_padding(value: Any, elaborator: Elaborator) -> Any:
    """Set the padding of a value that leaves the body of a router to zero; modules of pools know no padding."""
    if isinstance(value, Tensor) and value.type.padded and not elaborator.region and elaborator.decision is not None:
        return _apply(MaskPadding(), value, elaborator.decision, elaborator)
    return value


def _apply(op: Op, value: Tensor, decision: Decision, elaborator: Elaborator) -> Any:
    """Apply an op that only renames axes; it is named after the use, apart from the body."""
    return apply_op(OpUse(op), (value,), value.span, elaborator.with_naming(decision.naming))
