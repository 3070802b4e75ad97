"""Elaborates scans: a body that runs at each step of a sequence and carries states along."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.declare.words import format_count
from modgraph.diagnostics import Note
from modgraph.elaboration import errors
from modgraph.elaboration.elaborator import Elaborator, ScanBody
from modgraph.elaboration.entities import (
    POISON,
    AxisEntity,
    DeclaredEntity,
    Family,
    Poison,
    Tensor,
    describe,
    flatten_values,
)
from modgraph.elaboration.loops import poison_declared
from modgraph.elaboration.nodes import add_node, capture
from modgraph.elaboration.scope import Naming, Scope, join
from modgraph.elaboration.typing import elaborate_type
from modgraph.elaboration.until import elaborate_condition, elaborate_sequence, find_mixing_op, start_at_zero
from modgraph.ir import Graph, InputNode, PoolNode, Region, Result, ScanNode, weights_of
from modgraph.syntax import ast
from modgraph.types import find_repeated

State = tuple[ast.Carry, Tensor, Result | None]  # the declaration, the value at a step, the initial value


def elaborate_scan(statement: ast.Scan, elaborator: Elaborator) -> None:
    """Elaborate a scan into one node, and bind its names to the stacked values that its steps yield."""
    results, span = None, statement.sequence.span
    if elaborator.region:
        elaborator.report(errors.NotInRegion(span=span, what="a scan"))
    else:
        results = _elaborate_steps(statement, elaborator)
    if results is None:
        poison_declared(statement.body, elaborator)
        results = [POISON] * len(statement.names)
    for name, result in zip(statement.names, results, strict=True):
        if isinstance(elaborator.scope.names.get(name), DeclaredEntity | AxisEntity):
            elaborator.report(errors.DuplicateName(span=span, name=name))
        else:
            elaborator.scope.rebind(name, result)


def elaborate_yield(statement: ast.Yield, elaborator: Elaborator) -> None:
    """Elaborate a `yield` of one value, or of several in parentheses."""
    if elaborator.scan is None or elaborator.call is not None:
        elaborator.report(errors.YieldOutsideScan(span=statement.span))
        return
    span = statement.value.span
    for each in flatten_values(
        elaborator.with_naming(elaborator.scope.next_binding("yield")).evaluate(statement.value)
    ):
        if isinstance(each, Tensor) and each.type.per != "batch":
            each = replace(each, span=span)
        elif not isinstance(each, Poison):
            each = elaborator.report(errors.NotValue(span=span, what="a yield", found=describe(each)))
        elaborator.scan.yields.append(each)


def refuse_inside(tree: ast.Tree, what: str, way_out: str, elaborator: Elaborator) -> bool:
    """Report a tree that must not stand in the body of a scan or in the modules of a pool; return whether it does."""
    if elaborator.region:
        elaborator.report(errors.NotInRegion(span=tree.span, what=what))
    return bool(elaborator.region) or refuse_in_scan(tree, what, way_out, elaborator)


def refuse_in_scan(tree: ast.Tree, what: str, way_out: str, elaborator: Elaborator) -> bool:
    """Report a tree that must not stand in the body of a scan; return whether it does."""
    if elaborator.scan is not None:
        elaborator.report(errors.NotInScan(span=tree.span, what=what, way_out=way_out))
    return elaborator.scan is not None


def is_bound_outside(name: str, elaborator: Elaborator) -> bool:
    """Whether a binding in a scan would shadow a value that the same name has outside."""
    if elaborator.scan is None or elaborator.call is not None or elaborator.scope.find_bound(name) is not None:
        return False
    outer = elaborator.scan.outer
    outside = outer.scope.find_bound(name)
    is_value = isinstance(outside, Tensor) or (isinstance(outside, Family) and outside.of_values)
    return is_value or is_bound_outside(name, outer)


def _elaborate_steps(statement: ast.Scan, elaborator: Elaborator) -> list[Any] | None:
    """Return the values of the names after `as`; None after a reported mistake."""
    names, span = elaborator.scope.next_binding(statement.names[0]), statement.sequence.span
    sequence = elaborate_sequence(statement.sequence, elaborator.with_naming(names))
    scope = Scope(names.owner, names.node, elaborator.scope, frozen=elaborator.scope.frozen)
    scan, graph = ScanBody(elaborator, elaborator.context.call), Graph(names.node)
    inside = replace(elaborator, graph=graph, scope=scope, call=None, scan=scan, naming=Naming("", "", scope))
    step: Tensor | Poison = POISON
    if isinstance(sequence, Tensor):  # the body sees one step of it
        type_, name = sequence.type.with_shape(sequence.type.shape[1:]), join(names.node, statement.variable)
        elaborator.context.named[name] = InputNode(name=name, types=(type_,), span=span, within=elaborator.context.call)
        graph.add(elaborator.context.named[name])
        step = Tensor(Result(name), type_, span)
    scope.declare(statement.variable, step)
    initial = [_elaborate_start(carry, inside) for carry in statement.carries]
    known = [start for start in initial if isinstance(start, Tensor)]
    carries = zip(statement.carries, initial, strict=True)
    states = [_declare_state(carry, start, known, names, inside) for carry, start in carries]
    inside.elaborate(statement.body)
    elaborator.scope.end([*scope.ended, *scope.names], "scan")
    for name in statement.body.declared:  # modules, pools and routers exist once and stay visible outside
        if name in scope.names and name not in elaborator.scope.names:
            elaborator.scope.declare(name, scope.names[name])
    sound = [state for state in states if state is not None]
    following = [each for state in sound if (each := _find_next(state, inside)) is not None]
    if not _has_named_yields(statement, inside) or isinstance(sequence, Poison) or len(following) < len(states):
        return None
    steering = [*following, *_end(names, statement, sound, inside)]
    if len(steering) < len(following) + (statement.until is not None):
        return None
    return _finish(names, statement, sequence, sound, steering, inside)


def _end(names: Naming, statement: ast.Scan, states: list[State], inside: Elaborator) -> list[Result]:
    """The value of a loop's condition, if it has one and no mistake was reported."""
    if statement.until is None:
        return []
    assert inside.scan is not None
    changing = [join(names.node, statement.variable), *(value.result.node for _, value, _ in states)]
    final = [*((f'state "{carry.name}"', value) for carry, value, _ in states)]
    final += [(f'"{name}"', each) for name, each in zip(statement.names, inside.scan.yields, strict=True)]
    found = elaborate_condition(statement.until, changing, final, inside)
    return [] if found is None else [found]


def _elaborate_start(carry: ast.Carry, inside: Elaborator) -> Tensor | Poison | None:
    """Elaborate the initial value of a state, outside the scan; None if it starts at zero."""
    assert inside.scan is not None
    if carry.start is None:
        return None
    before = inside.scan.outer.with_naming(inside.scope.next_binding(f"{carry.name}.init"))
    return before.evaluate_tensor(carry.start, "the start of a state")


def _declare_state(
    carry: ast.Carry, start: Tensor | Poison | None, known: list[Tensor], names: Naming, inside: Elaborator
) -> State | None:
    """Declare a state in the body; None after a reported mistake. `known` are the starts of all states."""
    assert inside.scan is not None
    outer = inside.scan.outer
    type_ = elaborate_type(carry.type, outer)
    if carry.name in inside.scope.names:
        outer.report(errors.DuplicateName(span=carry.span, name=carry.name))
        return None
    inside.scope.declare(carry.name, POISON)
    if isinstance(type_, Poison) or isinstance(start, Poison):
        return None
    facts: Any = {"name": carry.name, "declared": str(type_)}
    if type_.dtype != "float":
        advice = "make it float, each axis a number, a pool or that of a value: float[8]"
        outer.report(errors.StateType(span=carry.type.span, found="a scan carries float", way_out=advice, **facts))
        return None
    if start is None and type_.padded:
        before = outer.with_naming(inside.scope.next_binding(f"{carry.name}.init"))
        start = start_at_zero(type_, known, carry.span, before)
        if start is None:
            found = f"nothing tells how long {type_.padded[0]} is"
            advice = f"start it as a value with that axis: {carry.name}: {carry.type.span.text} = x"
            outer.report(errors.StateType(span=carry.type.span, found=found, way_out=advice, **facts))
            return None
    if start is not None and not start.type.meets(type_):
        outer.report(errors.StateType(span=carry.type.span, found=f"it starts as {start.type}", **facts))
        return None
    node = InputNode(name=join(names.node, carry.name), types=(type_,), span=carry.span)
    if not add_node(inside, node, carry.span):
        return None
    value = Tensor(Result(node.name), type_ if start is None else start.type, carry.span)
    inside.scope.declare(carry.name, value)
    return carry, value, None if start is None else start.result


def _find_next(state: State, inside: Elaborator) -> Result | None:
    """Return the next value of a state, the last one that the body bound to its name; None after a reported mistake."""
    carry, at_step, _ = state
    name, span = carry.name, carry.span
    value = inside.scope.names[name]
    if value is at_step:
        inside.report(errors.StateStays(span=span, name=name))
    if not isinstance(value, Tensor):
        if not isinstance(value, Poison):
            inside.report(errors.NotValue(span=span, what=f'the next value of state "{name}"', found=describe(value)))
        return None
    if not value.type.meets(at_step.type):
        notes = (Note(text="its next value comes from here", span=value.span),) if value.span else ()
        facts: Any = {"name": name, "declared": str(at_step.type), "found": f"its next value is {value.type}"}
        inside.report(errors.StateType(span=span, notes=notes, **facts))
        return None
    return capture(value.result, span, inside)


def _has_named_yields(statement: ast.Scan, inside: Elaborator) -> bool:
    """Whether the body yields a value for each name; report it if not."""
    assert inside.scan is not None
    count, names, span = len(inside.scan.yields), statement.names, statement.sequence.span
    twice = next((name for name in names if names.count(name) > 1), None)
    if POISON in inside.scan.yields:
        return False
    if count == 0:
        inside.report(errors.NoYield(span=span))
    elif count != len(names):
        follow = f"{format_count(len(names), 'name')} {'follows' if len(names) == 1 else 'follow'}"
        inside.report(errors.YieldsAndNames(span=span, yielded=format_count(count, "value"), names=follow))
    elif twice is not None:
        inside.report(errors.DuplicateName(span=span, name=twice))
    else:
        return True
    return False


def _finish(
    names: Naming,
    statement: ast.Scan,
    sequence: Tensor,
    states: list[State],
    steering: list[Result],
    inside: Elaborator,
) -> list[Any] | None:
    """Add the node of a finished scan and return the values of its names."""
    assert inside.scan is not None
    outer, span, graph, yields = inside.scan.outer, statement.sequence.span, inside.graph, inside.scan.yields
    axis = sequence.type.shape[0]
    records = dict.fromkeys(result for _, result in sorted(graph.records().items()))
    stacked = [*(capture(value.result, span, inside) for value in yields), *records]
    captured = sorted((name, result) for result, name in inside.scan.captures.items())
    carried = [value.result.node for _, value, _ in states]
    variable = join(names.node, statement.variable)
    region = Region(graph, (variable, *carried, *(name for name, _ in captured)), (*steering, *stacked))
    final = 0 if statement.until is None else len(yields)
    steps = [*map(graph.type_of, stacked)]
    types = (*steps[:final], *(step.with_shape((axis, *step.shape)) for step in steps[final:]))
    reason = ""
    if final and (mixing := find_mixing_op(graph)):
        reason = f"{mixing} depends on other examples, also on those that have ended"
        way_out = "use layer_norm or group_norm in it, or loop without until"
    elif any(find_repeated(type_.shape) for type_ in types):
        reason = f'the value of a step already has the axis "{axis.name}" of the steps'
        way_out = "reduce it over that axis first"
    elif axis.is_padded and (pool := next((each for each in graph.nodes_of(PoolNode) if each.over_batch), None)):
        reason = f'modules of "{pool.name}" depend on all their messages, also of examples that have ended'
        way_out = "use layer_norm or group_norm in it, or give the axis a number in the input's type"
    if reason:
        outer.report(errors.DoesNotFit(span=span, who="a scan", reason=reason, way_out=way_out))
        return None
    node = ScanNode(name=names.node, types=types, span=span, region=region, carried=len(carried), final=final)
    initial = {value.result.node: start for _, value, start in states if start is not None}
    inputs = {variable: sequence.result, **initial, **dict(captured)}
    if node.name in outer.graph:
        outer.report(errors.DuplicateName(span=span, name=node.name))
        return None
    if not add_node(outer, node, span, inputs, padded=(axis.lengths,) if axis.is_padded else ()):
        return None
    if names.shifting is not None and any(each.name.startswith(f"{names.owner}.") for each in weights_of(graph)):
        outer.report(errors.NamesWouldShift(span=span, name=names.shifting))
    return [Tensor(Result(node.name, at), node.types[at], value.span) for at, value in enumerate(yields)]
