"""Scans: a body run at each step of a sequence, with states that are carried along."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from modgraph.diagnostics import Note, Span
from modgraph.elaboration import errors
from modgraph.elaboration.context import Here, ScanBody
from modgraph.elaboration.entities import (
    POISON,
    Family,
    ModuleEntity,
    Poison,
    PoolEntity,
    RouterEntity,
    Several,
    Tensor,
    described,
)
from modgraph.elaboration.expressions import evaluate, tensor
from modgraph.elaboration.loops import poison_declared
from modgraph.elaboration.scope import Naming, Scope, join
from modgraph.elaboration.typing import elaborate_type
from modgraph.ir import Graph, InputNode, Region, Result, RouteNode, ScanNode, weights_of
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType


@dataclass(frozen=True)
class State:
    """A value carried from step to step: the tree that declares it, what it is at a step, what it starts with."""

    carry: ast.Carry
    value: Tensor
    start: Result | None


def elaborate_scan(statement: ast.Scan, here: Here) -> None:
    """One node for all steps; its names are bound to what the steps yield."""
    results = _scan(statement, here) if _may_stand(statement, here) else None
    if results is None:
        poison_declared(statement.body, here)
        results = [POISON] * len(statement.names)
    for name, result in zip(statement.names, results, strict=True):
        if isinstance(here.scope.names.get(name), ModuleEntity | PoolEntity | RouterEntity):
            here.tell(errors.DuplicateName(span=statement.sequence.span, name=name))
            continue
        here.scope.rebind(name, result)


def elaborate_yield(statement: ast.Yield, here: Here) -> None:
    """What a step gives: one value, or several in parentheses."""
    if here.scan is None or here.call is not None:
        here.tell(errors.YieldOutsideScan(span=statement.span))
        return
    value = evaluate(statement.value, here.under(here.scope.next_binding("yield")))
    for each in value.tensors if isinstance(value, Several) else (value,):
        here.scan.yields.append(_yielded(each, statement.value.span, here))


def _yielded(value: Any, span: Span, here: Here) -> Tensor | Poison:
    if isinstance(value, Poison):
        return POISON
    if not isinstance(value, Tensor) or value.type.per == "batch":
        here.tell(errors.NotValue(span=span, what="what a step yields", found=described(value)))
        return POISON
    return replace(value, span=span)


def stands_in_scan(statement: ast.Statement, what: str, way_out: str, here: Here) -> bool:
    """Tell of what belongs outside of a scan's body."""
    if here.scan is not None:
        here.tell(errors.NotInScan(span=statement.span, what=what, way_out=way_out))
    return here.scan is not None


def carried_out(name: str, here: Here) -> bool:
    """Whether binding a name in a scan would seem to change the value that the scan's surroundings call so."""
    if here.scan is None or here.call is not None or here.scope.bound(name) is not None:
        return False
    outside = here.scan.outer.scope.bound(name)
    return isinstance(outside, Tensor) or (isinstance(outside, Family) and outside.of_values)


def _may_stand(statement: ast.Scan, here: Here) -> bool:
    advice = "yield what the inner one needs, and run one scan after the other"
    if here.region:
        here.tell(errors.NotInRegion(span=statement.sequence.span, what="a scan"))
    elif here.scan is not None:
        here.tell(errors.NotInScan(span=statement.sequence.span, what="a scan", way_out=advice))
    return not here.region and here.scan is None


def _scan(statement: ast.Scan, here: Here) -> list[Any] | None:
    """The values of the names after `as`, or None after a told mistake."""
    from modgraph.elaboration.statements import elaborate_body

    names = here.scope.next_binding(statement.names[0])
    sequence = _sequence(statement, here.under(names))
    inside = _inside(names, here)
    inside.scope.declare(statement.variable, _slice(sequence, join(names.node, statement.variable), inside))
    states = [_state(carry, names, inside) for carry in statement.carries]
    elaborate_body(statement.body, inside)
    _show_declared(statement.body, inside.scope, here)
    known = [state for state in states if state is not None]
    following = [each for state in known if (each := _next(state, inside)) is not None]
    yields = _yields(statement, inside)
    if isinstance(sequence, Poison) or yields is None or len(following) < len(states):
        return None
    return _finish(names, statement, sequence, known, following, yields, inside)


def _sequence(statement: ast.Scan, here: Here) -> Tensor | Poison:
    value = tensor(statement.sequence, here, "what a scan runs over")
    if isinstance(value, Tensor) and (not value.type.shape or value.type.per == "batch"):
        here.tell(errors.NoTimeAxis(span=statement.sequence.span, found=str(value.type)))
        return POISON
    return replace(value, span=statement.sequence.span) if isinstance(value, Tensor) else POISON


def _slice(sequence: Tensor | Poison, name: str, inside: Here) -> Tensor | Poison:
    """What the body sees of the sequence: one step of it."""
    if isinstance(sequence, Poison):
        return POISON
    step = sequence.type.with_shape(sequence.type.shape[1:])
    inside.graph.add(InputNode(name=name, types=(step,), span=sequence.span))
    inside.context.named[name] = inside.graph[name]
    return Tensor(Result(name), step, sequence.span)


def _inside(names: Naming, here: Here) -> Here:
    """Where the body stands: a graph of its own, names below the scan's."""
    scope = Scope(names.owner, names.node, here.scope, frozen=here.scope.frozen)
    graph = Graph(names.node)
    return replace(here, graph=graph, scope=scope, call=None, scan=ScanBody(here), naming=Naming("", "", scope))


def _state(carry: ast.Carry, names: Naming, inside: Here) -> State | None:
    """A state, declared in the body; None after a told mistake."""
    assert inside.scan is not None
    outer = inside.scan.outer
    type_ = elaborate_type(carry.type, outer)
    place = outer.under(inside.scope.next_binding(f"{carry.name}.init"))
    start = None if carry.start is None else tensor(carry.start, place, "the start of a state")
    if carry.name in inside.scope.names:
        outer.tell(errors.DuplicateName(span=carry.span, name=carry.name))
        return None
    inside.scope.declare(carry.name, POISON)
    if isinstance(type_, Poison) or isinstance(start, Poison):
        return None
    facts: Any = {"name": carry.name, "declared": str(type_)}
    if type_.dtype != "float" or type_.symbolic:
        advice = "a state is float, and each of its axes has a number: float[8]"
        outer.tell(errors.StateType(span=carry.type.span, found="that cannot be carried", way_out=advice, **facts))
        return None
    if start is not None and start.type != type_:
        found = f"it starts as {start.type}"
        outer.tell(errors.StateType(span=carry.type.span, found=found, **facts))
        return None
    node = InputNode(name=join(names.node, carry.name), types=(type_,), span=carry.span)
    if not inside.add(node, carry.span):
        return None
    value = Tensor(Result(node.name), type_ if start is None else start.type, carry.span)
    inside.scope.declare(carry.name, value)
    return State(carry, value, None if start is None else start.result)


def _next(state: State, inside: Here) -> Result | None:
    """The next value of a state: the last that the body bound to its name. None after a told mistake."""
    name, carry = state.carry.name, state.carry
    value = inside.scope.names[name]
    if isinstance(value, Poison):
        return None
    if value is state.value:
        inside.tell(errors.StateStays(span=carry.span, name=name))
    if not isinstance(value, Tensor):
        what = f'the next value of state "{name}"'
        inside.tell(errors.NotValue(span=carry.span, what=what, found=described(value)))
        return None
    if value.type != state.value.type:
        notes = (Note(text="its next value comes from here", span=value.span),) if value.span else ()
        facts: Any = {"name": name, "declared": str(state.value.type), "found": f"its next value is {value.type}"}
        inside.tell(errors.StateType(span=carry.span, notes=notes, **facts))
        return None
    return inside.reached(value.result, carry.span)


def _yields(statement: ast.Scan, inside: Here) -> list[Tensor] | None:
    """What the body yielded, a value for each name."""
    assert inside.scan is not None
    found, names = inside.scan.yields, statement.names
    if POISON in found:
        return None
    if not found:
        inside.tell(errors.NoYield(span=statement.sequence.span))
    elif len(found) != len(names):
        inside.tell(errors.YieldsAndNames(span=statement.sequence.span, values=len(found), names=len(names)))
    elif len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        inside.tell(errors.DuplicateName(span=statement.sequence.span, name=twice))
    else:
        return found
    return None


def _show_declared(body: ast.Body, scope: Scope, here: Here) -> None:
    """Modules, pools and routers of the body are seen outside: there is one of each."""
    for name in body.declared:
        if name in scope.names and name not in here.scope.names:
            here.scope.declare(name, scope.names[name])


def _finish(
    names: Naming,
    statement: ast.Scan,
    sequence: Tensor,
    states: list[State],
    following: list[Result],
    yields: list[Tensor],
    inside: Here,
) -> list[Any] | None:
    """The node of a scan whose body is done; the values of its names."""
    assert inside.scan is not None
    outer, span, graph = inside.scan.outer, statement.sequence.span, inside.graph
    axis = sequence.type.shape[0]
    stacked = [inside.reached(value.result, span) for value in yields] + _recorded(graph)
    captured = sorted((name, result) for result, name in inside.scan.read.items())
    carried = [state.value.result.node for state in states]
    variable = join(names.node, statement.variable)
    arguments = (variable, *carried, *(name for name, _ in captured))
    region = Region(graph, arguments, (*following, *stacked))
    types = tuple(_over(axis, graph.type_of(result)) for result in stacked)
    node = ScanNode(name=names.node, types=types, span=span, region=region, carried=len(carried))
    inputs = {variable: sequence.result}
    if isinstance(axis, str):
        inputs["length"] = outer.length_of(axis, span)
    inputs |= {state.value.result.node: state.start for state in states if state.start is not None}
    inputs |= captured
    if not outer.add(node, span, inputs):
        return None
    if names.shifting is not None and any(each.name.startswith(f"{names.owner}.") for each in weights_of(graph)):
        outer.tell(errors.NamesWouldShift(span=span, name=names.shifting))
    return [Tensor(Result(node.name, at), node.types[at], value.span) for at, value in enumerate(yields)]


def _recorded(graph: Graph) -> list[Result]:
    """What the routes of a body record, by name."""
    named = {
        f"{route.name}.{record}": result
        for route in graph.of_kind(RouteNode)
        for record, result in graph.recorded(route).items()
    }
    return [result for _, result in sorted(named.items())]


def _over(axis: Axis, step: TensorType) -> TensorType:
    return step.with_shape((axis, *step.shape))
