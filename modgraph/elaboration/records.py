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

WAYS_OUT: dict[type, str] = {
    ModuleEntity: "declare a weight to read it: weight w: float[3, 8] = normal(0.02) y = (x, w) -> contract",
    PoolEntity: "name the router that chooses among its modules: r.gates",
    Tensor: "apply an op to the value: x -> transpose",
    Family: "take a member of the family with [ ]",
}
IN_MODULE = "compute the weights in the module: w = x -> linear(POOL) -> softmax y = x -> POOL by w"


def evaluate_attribute(expression: ast.Attribute, site: Site) -> Any:
    """A record of a router: `gate.gates`, of its only route, or a family of several."""
    target, name = site.evaluate(expression.target), expression.name
    if isinstance(target, Poison):
        return POISON
    if not isinstance(target, RouterEntity):
        span, notes = site.at_fault(expression.target)
        way_out = next((advice for kind, advice in WAYS_OUT.items() if isinstance(target, kind)), WAYS_OUT[Tensor])
        facts: Any = {"found": described(target), "name": name, "way_out": way_out}
        return site.tell(errors.NoPart(span=span, notes=notes, **facts))
    records = target.router.record_names
    if not site.region and name not in records:
        suggestion = did_you_mean(name, records, f"{target.router.name} keeps: {{known}}")
        return site.tell(errors.UnknownName(span=expression.span, name=name, suggestion=suggestion))
    found_records = _records_of(target, name, expression.span, site)
    if isinstance(found_records, Poison):
        return POISON
    if len(found_records) == 1:
        return found_records[0]
    if found_records or site.context.incomplete:
        return Family(name, dict(enumerate(found_records))) if found_records else POISON
    found, way_out = "of a router that has routed nothing yet", "route something by it first: x -> pool by router"
    return site.tell(
        errors.NotValue(span=expression.span, what=f'"{target.path}.{name}"', found=found, way_out=way_out)
    )


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
            read = member.router.record_as(*bound.op.reads)
            records = _records_of(member, "" if read is None else read.name, span, site)
            if isinstance(records, Poison):
                return POISON
            tensors += records
    if not tensors and routers_only:
        if site.context.incomplete:
            return POISON
        name = described(operands[0][0]).split('"')[1]
        site.tell(errors.EmptyFamily(span=call.span, name=name, statistic=bound.op.name))
        return 0.0
    return apply_op(bound, tuple(tensors), call.span, site)


def _records_of(router: RouterEntity, record: str, span: Span, site: Site) -> list[Any] | Poison:
    """A record of every route so far that uses a router, as the surroundings of the route see it; inside a scan, of
    this step and of those outside. A module of a pool reads none."""
    if site.region:
        what = f'a record of the router "{router.path}"'
        return site.tell(errors.NotInRegion(span=span, what=what, way_out=IN_MODULE))
    graphs = [site.graph] if site.scan is None else [site.scan.outer.graph, site.graph]
    found = [(graph, each) for graph in graphs for each in graph.decisions(router.path)] if record else []
    site.context.spend(RECORD * len(found), span)
    records = []
    for graph, each in found:
        value = Tensor(each.results[record], graph.type_of(each.results[record]))
        decision: Decision | None = site.context.decisions.get(each.name)
        if decision is not None:  # else of a router that Python computes
            value = _unbind_once(each.name, value, decision, span, site)
        records.append(value)
    return records


def _unbind_once(name: str, value: Tensor, decision: Decision, span: Span, site: Site) -> Any:
    """A record of a use of a router, by its name, without the axes of its body."""
    known = decision.read.get((id(site.graph), value.result))
    if known is None:
        before = len(site.graph)
        known = unbind(replace(value, span=span), decision, site)
        site.context.unbound |= {node.name: name for node in islice(site.graph, before, None) if name in site.graph}
        decision.read[id(site.graph), value.result] = known
    return replace(known, span=None) if isinstance(known, Tensor) else known
