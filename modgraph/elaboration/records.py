"""What routers record, as values: by name, and as operands of statistics."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.bodies import Decision
from modgraph.elaboration.context import RECORD
from modgraph.elaboration.decisions import unbind
from modgraph.elaboration.entities import (
    POISON,
    Family,
    ModuleEntity,
    OpUse,
    Poison,
    PoolEntity,
    RouterEntity,
    Tensor,
    described,
)
from modgraph.elaboration.site import Site
from modgraph.syntax import ast


def evaluate_attribute(expression: ast.Attribute, site: Site) -> Any:
    """A record of a router: `gate.gates`, of its only route, or a family of several."""
    target = site.evaluate(expression.target)
    if isinstance(target, Poison):
        return POISON
    if not isinstance(target, RouterEntity):
        _report_no_part(expression, target, site)
        return POISON
    if site.region:
        refuse_record(target, expression.span, site)
        return POISON
    records = target.router.record_names
    if expression.name not in records:
        suggestion = did_you_mean(expression.name, records, f"{target.router.name} keeps: {{known}}")
        return site.tell(errors.UnknownName(span=expression.span, name=expression.name, suggestion=suggestion))
    found_records = records_of(target, expression.name, expression.span, site)
    if len(found_records) == 1:
        return found_records[0]
    if not found_records and site.context.incomplete:
        return POISON
    if not found_records:
        what = f'"{target.path}.{expression.name}"'
        advice = "route something by it first: x -> pool by router"
        found = "of a router that has routed nothing yet"
        return site.tell(errors.NotValue(span=expression.span, what=what, found=found, way_out=advice))
    return Family(expression.name, dict(enumerate(found_records)))


def refuse_record(router: RouterEntity, span: Span, site: Site) -> None:
    """Report that a module of a pool reads what a router decided."""
    advice = "compute the weights in the module: w = x -> linear(POOL) -> softmax y = x -> POOL by w"
    site.tell(errors.NotInRegion(span=span, what=f'a record of the router "{router.path}"', way_out=advice))


WAYS_OUT: dict[type, str] = {
    ModuleEntity: "declare a weight to read it: weight w: float[3, 8] = normal(0.02) y = (x, w) -> contract",
    PoolEntity: "name the router that chooses among its modules: r.gates",
    Tensor: "apply an op to the value: x -> transpose",
    Family: "take a member of the family with [ ]",
}


def _report_no_part(expression: ast.Attribute, target: Any, site: Site) -> None:
    """Report a dot behind a value that is not a router."""
    span, notes = site.at_fault(expression.target)
    way_out = next((advice for kind, advice in WAYS_OUT.items() if isinstance(target, kind)), WAYS_OUT[Tensor])
    facts = {"found": described(target), "name": expression.name, "way_out": way_out}
    site.tell(errors.NoPart(span=span, notes=notes, **facts))


def apply_statistic(bound: OpUse, operands: list[tuple[Any, Any]], call: ast.Call, site: Site) -> Any:
    """An op applied in function style: to values, or to routers, whose gates it takes."""
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
                found = f"this is {described(value)}"
                advice = "name the router that chooses among its modules" if isinstance(member, PoolEntity) else ""
                return site.tell(errors.WrongKind(span=span, needed="a value or a router", found=found, way_out=advice))
            if site.region:
                refuse_record(member, span, site)
                return POISON
            read = member.router.record_as(*bound.op.reads)
            tensors += records_of(member, read.name, span, site) if read is not None else []
    if not tensors and routers_only:
        if site.context.incomplete:
            return POISON
        name = described(operands[0][0]).split('"')[1]
        site.tell(errors.EmptyFamily(span=call.span, name=name, statistic=bound.op.name))
        return 0.0
    return apply_op(bound, tuple(tensors), call.span, site)


def records_of(router: RouterEntity, record: str, span: Span, site: Site) -> list[Tensor]:
    """A record of every route so far that uses a router; inside a scan, of this step and of those outside."""
    graphs = [site.graph] if site.scan is None else [site.scan.outer.graph, site.graph]
    found = [(graph, each.name, each.results[record]) for graph in graphs for each in graph.decisions(router.path)]
    site.context.spend(RECORD * len(found), span)
    return [_read(name, Tensor(result, graph.type_of(result)), span, site) for graph, name, result in found]


def _read(name: str, value: Tensor, span: Span, site: Site) -> Any:
    """A record of a use of a router, by its name, as the surroundings of the use see it."""
    decision: Decision | None = site.context.decisions.get(name)
    if decision is None:  # of a router that Python computes
        return value
    known = decision.read.get((id(site.graph), value.result))
    if known is None:
        before = len(site.graph)
        known = unbind(replace(value, span=span), decision, site)
        site.context.unbound |= {node.name: name for node in islice(site.graph, before, None) if name in site.graph}
        decision.read[id(site.graph), value.result] = known
    return replace(known, span=None) if isinstance(known, Tensor) else known
