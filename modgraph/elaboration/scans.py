"""Scans: a body run at each step of a sequence, with states that are carried along."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from modgraph.declare.words import shown_count
from modgraph.diagnostics import Note, Span
from modgraph.elaboration import errors
from modgraph.elaboration.entities import (
    POISON,
    Family,
    ModuleEntity,
    Poison,
    RouterEntity,
    Tensor,
    WithAxis,
    described,
    several,
)
from modgraph.elaboration.loops import poison_declared
from modgraph.elaboration.scope import Naming, Scope, join
from modgraph.elaboration.site import ScanBody, Site
from modgraph.elaboration.typing import elaborate_type
from modgraph.ir import Graph, InputNode, PoolNode, Region, Result, ScanNode, weights_of
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType, repeated


@dataclass(frozen=True)
class State:
    """A value carried from step to step: the tree that declares it, what it is at a step, what it starts with."""

    carry: ast.Carry
    value: Tensor
    start: Result | None


def elaborate_scan(statement: ast.Scan, site: Site) -> None:
    """One node for all steps; its names are bound to what the steps yield."""
    results = _scan(statement, site) if _may_stand(statement, site) else None
    if results is None:
        poison_declared(statement.body, site)
        results = [POISON] * len(statement.names)
    for name, result in zip(statement.names, results, strict=True):
        if isinstance(site.scope.names.get(name), ModuleEntity | WithAxis | RouterEntity):
            site.tell(errors.DuplicateName(span=statement.sequence.span, name=name))
            continue
        site.scope.rebind(name, result)


def elaborate_yield(statement: ast.Yield, site: Site) -> None:
    """What a step gives: one value, or several in parentheses."""
    if site.scan is None or site.call is not None:
        site.tell(errors.YieldOutsideScan(span=statement.span))
        return
    value = site.under(site.scope.next_binding("yield")).evaluate(statement.value)
    for each in several(value):
        site.scan.yields.append(_yielded(each, statement.value.span, site))


def _yielded(value: Any, span: Span, site: Site) -> Tensor | Poison:
    if isinstance(value, Poison):
        return POISON
    if not isinstance(value, Tensor) or value.type.per == "batch":
        return site.tell(errors.NotValue(span=span, what="what a step yields", found=described(value)))
    return replace(value, span=span)


def stands_in_scan(statement: ast.Statement, what: str, way_out: str, site: Site) -> bool:
    """Tell of what belongs outside of a scan's body."""
    if site.scan is not None:
        site.tell(errors.NotInScan(span=statement.span, what=what, way_out=way_out))
    return site.scan is not None


def carried_out(name: str, site: Site) -> bool:
    """Whether binding a name in a scan would seem to change the value that the scan's surroundings call so."""
    if site.scan is None or site.call is not None or site.scope.bound(name) is not None:
        return False
    outside = site.scan.outer.scope.bound(name)
    return isinstance(outside, Tensor) or (isinstance(outside, Family) and outside.of_values)


def _may_stand(statement: ast.Scan, site: Site) -> bool:
    advice = "yield what the inner one needs, and run one scan after the other"
    if site.region:
        site.tell(errors.NotInRegion(span=statement.sequence.span, what="a scan"))
    elif site.scan is not None:
        site.tell(errors.NotInScan(span=statement.sequence.span, what="a scan", way_out=advice))
    return not site.region and site.scan is None


def _scan(statement: ast.Scan, site: Site) -> list[Any] | None:
    """The values of the names after `as`, or None after a told mistake."""
    names = site.scope.next_binding(statement.names[0])
    sequence = _sequence(statement, site.under(names))
    inside = _inside(names, site)
    inside.scope.declare(statement.variable, _slice(sequence, join(names.node, statement.variable), inside))
    states = [_state(carry, names, inside) for carry in statement.carries]
    inside.elaborate(statement.body)
    site.scope.end([*inside.scope.ended, *inside.scope.names], "scan")
    _show_declared(statement.body, inside.scope, site)
    known = [state for state in states if state is not None]
    following = [each for state in known if (each := _next(state, inside)) is not None]
    yields = _yields(statement, inside)
    if isinstance(sequence, Poison) or yields is None or len(following) < len(states):
        return None
    return _finish(names, statement, sequence, known, following, yields, inside)


def _sequence(statement: ast.Scan, site: Site) -> Tensor | Poison:
    value = site.tensor(statement.sequence, "what a scan runs over")
    if isinstance(value, Tensor) and (not value.type.shape or value.type.per == "batch"):
        return site.tell(errors.NoTimeAxis(span=statement.sequence.span, found=str(value.type)))
    return replace(value, span=statement.sequence.span) if isinstance(value, Tensor) else POISON


def _slice(sequence: Tensor | Poison, name: str, inside: Site) -> Tensor | Poison:
    """What the body sees of the sequence: one step of it."""
    if isinstance(sequence, Poison):
        return POISON
    step = sequence.type.with_shape(sequence.type.shape[1:])
    inside.graph.add(InputNode(name=name, types=(step,), span=sequence.span, within=inside.context.call))
    inside.context.named[name] = inside.graph[name]
    return Tensor(Result(name), step, sequence.span)


def _inside(names: Naming, site: Site) -> Site:
    """Where the body stands: a graph of its own, names below the scan's."""
    scope = Scope(names.owner, names.node, site.scope, frozen=site.scope.frozen)
    graph, scan = Graph(names.node), ScanBody(site, site.context.call)
    return replace(site, graph=graph, scope=scope, call=None, scan=scan, naming=Naming("", "", scope))


def _state(carry: ast.Carry, names: Naming, inside: Site) -> State | None:
    """A state, declared in the body; None after a told mistake."""
    assert inside.scan is not None
    outer = inside.scan.outer
    type_ = elaborate_type(carry.type, outer)
    before = outer.under(inside.scope.next_binding(f"{carry.name}.init"))
    start = None if carry.start is None else before.tensor(carry.start, "the start of a state")
    if carry.name in inside.scope.names:
        outer.tell(errors.DuplicateName(span=carry.span, name=carry.name))
        return None
    inside.scope.declare(carry.name, POISON)
    if isinstance(type_, Poison) or isinstance(start, Poison):
        return None
    facts: Any = {"name": carry.name, "declared": str(type_)}
    if type_.dtype != "float" or type_.padded:
        advice = "a state is float, and each of its axes is a number or a pool's: float[8]"
        outer.tell(errors.StateType(span=carry.type.span, found="that cannot be carried", way_out=advice, **facts))
        return None
    if start is not None and not start.type.meets(type_):
        found = f"it starts as {start.type}"
        outer.tell(errors.StateType(span=carry.type.span, found=found, **facts))
        return None
    node = InputNode(name=join(names.node, carry.name), types=(type_,), span=carry.span)
    if not inside.add(node, carry.span):
        return None
    value = Tensor(Result(node.name), type_ if start is None else start.type, carry.span)
    inside.scope.declare(carry.name, value)
    return State(carry, value, None if start is None else start.result)


def _next(state: State, inside: Site) -> Result | None:
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
    if not value.type.meets(state.value.type):
        notes = (Note(text="its next value comes from here", span=value.span),) if value.span else ()
        facts: Any = {"name": name, "declared": str(state.value.type), "found": f"its next value is {value.type}"}
        inside.tell(errors.StateType(span=carry.span, notes=notes, **facts))
        return None
    return inside.reached(value.result, carry.span)


def _yields(statement: ast.Scan, inside: Site) -> list[Tensor] | None:
    """What the body yielded, a value for each name."""
    assert inside.scan is not None
    found, names = inside.scan.yields, statement.names
    if POISON in found:
        return None
    if not found:
        inside.tell(errors.NoYield(span=statement.sequence.span))
    elif len(found) != len(names):
        yielded = shown_count(len(found), "value")
        follow = f"{shown_count(len(names), 'name')} {'follows' if len(names) == 1 else 'follow'}"
        inside.tell(errors.YieldsAndNames(span=statement.sequence.span, yielded=yielded, names=follow))
    elif len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        inside.tell(errors.DuplicateName(span=statement.sequence.span, name=twice))
    else:
        return found
    return None


def _show_declared(body: ast.Body, scope: Scope, site: Site) -> None:
    """Modules, pools and routers of the body are seen outside: there is one of each."""
    for name in body.declared:
        if name in scope.names and name not in site.scope.names:
            site.scope.declare(name, scope.names[name])


def _finish(
    names: Naming,
    statement: ast.Scan,
    sequence: Tensor,
    states: list[State],
    following: list[Result],
    yields: list[Tensor],
    inside: Site,
) -> list[Any] | None:
    """The node of a scan whose body is done; the values of its names."""
    assert inside.scan is not None
    outer, span, graph = inside.scan.outer, statement.sequence.span, inside.graph
    axis = sequence.type.shape[0]
    stacked = [inside.reached(value.result, span) for value in yields] + _records(graph)
    captured = sorted((name, result) for result, name in inside.scan.read.items())
    carried = [state.value.result.node for state in states]
    variable = join(names.node, statement.variable)
    arguments = (variable, *carried, *(name for name, _ in captured))
    region = Region(graph, arguments, (*following, *stacked))
    types = tuple(_over(axis, graph.type_of(result)) for result in stacked)
    if any(repeated(type_.shape) for type_ in types):
        reason = f'a step gives a value that has the axis "{axis.name}" of the steps already'
        outer.tell(errors.DoesNotFit(span=span, who="a scan", reason=reason, way_out="reduce it over that axis first"))
        return None
    if axis.is_padded and (pool := next((each for each in graph.of_kind(PoolNode) if each.over_batch), None)):
        reason = f'modules of "{pool.name}" depend on all of their messages, also on those of examples that have ended'
        way_out = "use layer_norm or group_norm in it, or give the axis a number in the input's type"
        outer.tell(errors.DoesNotFit(span=span, who="a scan", reason=reason, way_out=way_out))
        return None
    node = ScanNode(name=names.node, types=types, span=span, region=region, carried=len(carried))
    inputs = {variable: sequence.result}
    inputs |= {state.value.result.node: state.start for state in states if state.start is not None}
    inputs |= captured
    if node.name in outer.graph:
        outer.tell(errors.DuplicateName(span=span, name=node.name))
        return None
    if not outer.add(node, span, inputs, padded=(axis.name,) if axis.is_padded else ()):
        return None
    if names.shifting is not None and any(each.name.startswith(f"{names.owner}.") for each in weights_of(graph)):
        outer.tell(errors.NamesWouldShift(span=span, name=names.shifting))
    return [Tensor(Result(node.name, at), node.types[at], value.span) for at, value in enumerate(yields)]


def _records(graph: Graph) -> list[Result]:
    """What the routers of a body record, by name."""
    return list(dict.fromkeys(result for _, result in sorted(graph.records().items())))


def _over(axis: Axis, step: TensorType) -> TensorType:
    return step.with_shape((axis, *step.shape))
