"""Elaborates growth: additional modules of a pool, and the condition under which training adds modules.

`grow pool[2]` adds modules that train while the others are frozen. `grow pool by router when … where …` adds a node
that continual training evaluates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from modgraph.diagnostics import Note, did_you_mean
from modgraph.elaboration import entities, errors
from modgraph.elaboration.bindings import enter_binding
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import AxisEntity, Entity, Poison, PoolEntity, RouterEntity, Tensor, describe
from modgraph.elaboration.nodes import add_node, adopt_node
from modgraph.elaboration.scans import refuse_in_scan
from modgraph.elaboration.scope import Scope
from modgraph.ir import MOST_MODULES, GrowthNode
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType

E = TypeVar("E", PoolEntity, RouterEntity)
W = TypeVar("W", PoolEntity, AxisEntity)
OF_TYPES = "its size is the axis of a type", "give the pool a number as its size"
UNLIKE = "its modules differ, so there is none to repeat", "add the module to the pool's list"
EXAMPLES: dict[type[Entity], str] = {PoolEntity: "pool NAME[2] = …", RouterEntity: "router NAME = …"}


def elaborate_grow_by(statement: ast.GrowBy, elaborator: Elaborator) -> None:
    if elaborator.region:
        elaborator.report(errors.NotInRegion(span=statement.span, what="growth"))
        return
    pool = _find_declared(statement.pool, PoolEntity, statement, elaborator)
    by = elaborator.evaluate_constant(statement.by, "the number of modules to add")
    if pool is None or isinstance(by, Poison):
        return
    others = _find_along(pool.axis, PoolEntity, elaborator.scope)
    problem = UNLIKE if len(pool.templates) > 1 else None
    if any(other.path in elaborator.context.named for other in others.values()):
        problem = "it was used before", "let it grow before its first use"
    if _find_along(pool.axis, AxisEntity, elaborator.scope):
        problem = OF_TYPES
    if type(by) is not int or not 0 <= by <= MOST_MODULES - pool.size:
        most = f"from 0 to {MOST_MODULES - pool.size}, as in: grow p[1]"
        problem = "the number must be whole", most
    if problem is not None:
        elaborator.report(
            errors.CannotGrow(span=statement.span, pool=statement.pool, reason=problem[0], way_out=problem[1])
        )
    elif by:
        for name, other in others.items():
            elaborator.scope.rebind(name, replace(other, size=other.size + by, grown=other.grown + by))


def _find_along(axis: Axis, kind: type[W], scope: Scope) -> dict[str, W]:
    """Find the pools, or the axes of types, along an axis, by their names in a scope."""
    known = (item for here in reversed([*scope.chain()]) for item in here.names.items())
    return {name: each for name, each in known if isinstance(each, kind) and each.axis == axis}


def _find_declared(name: str, kind: type[E], statement: ast.GrowBy | ast.Grow, elaborator: Elaborator) -> E | None:
    """Find the pool or router of a name; None after a reported mistake."""
    found = elaborator.scope.find(name)
    if isinstance(found, kind):
        return found
    word = kind.kind
    if found is None:
        known = elaborator.list_candidates(statement.span, lambda value: isinstance(value, kind))
        declare = f"declare it first: {EXAMPLES[kind]}"
        suggestion = did_you_mean(name, known, f"the {word}s here: {{known}}") if known else declare
        elaborator.report(errors.UnknownName(span=statement.span, name=name, suggestion=suggestion))
    elif not isinstance(found, Poison):
        way_out = "grow each pool where it is declared, in the same loop" if isinstance(found, entities.Family) else ""
        elaborator.refuse(statement.span, f"a {word}", describe(found), way_out)
    return None


def elaborate_grow(statement: ast.Grow, elaborator: Elaborator) -> None:
    """Add the node for the growth of a pool unless the condition behind `where` is false."""
    if elaborator.region:
        elaborator.report(errors.NotInRegion(span=statement.span, what="growth"))
        return
    if elaborator.decision is not None:
        way_out = f"move it to a model: {statement.span.text.splitlines()[0]}"
        elaborator.refuse(statement.span, "the body of a model or block", "the body of a router", way_out)
        return
    if refuse_in_scan(statement, "growth", "move it after the scan", elaborator):
        return
    pool = _find_declared(statement.pool, PoolEntity, statement, elaborator)
    router = _find_declared(statement.router, RouterEntity, statement, elaborator)
    if pool is not None:
        elaborator.context.may_grow.add(pool.axis.name)
    wanted = True if statement.where is None else elaborator.evaluate_constant(statement.where, "the condition")
    if statement.where is not None and not isinstance(wanted, bool | Poison):
        problem = f"the condition must be true or false, not {describe(wanted)}"
        elaborator.report(errors.Arithmetic(span=statement.where.span, problem=problem, way_out="compare it: i >= 9"))
    if wanted is not True:
        return
    when = _evaluate_condition(statement, elaborator)
    if pool is None or router is None or when is None or not _may_grow(pool, router, statement, elaborator):
        return
    elaborator.context.growing[pool.axis.name] = statement.span
    uses = {"pool": pool.path, "router": router.path}
    adopted = [adopt_node(each, elaborator) for each in uses.values()]
    assert all(adopted), "move the pool and its router out of the scan"
    node = GrowthNode(name=f"{pool.path}.growth", span=statement.span)
    add_node(elaborator, node, statement.span, {"when": when.result}, uses)


def _evaluate_condition(statement: ast.Grow, elaborator: Elaborator) -> Tensor | None:
    """Evaluate the condition, a number for the whole batch; None after a reported mistake."""
    value = enter_binding(f"grow_{statement.pool}", elaborator).evaluate(statement.condition)
    if isinstance(value, Poison) or (isinstance(value, Tensor) and value.type == TensorType("float", per="batch")):
        return value if isinstance(value, Tensor) else None
    way_out = "compute it from values of the batch, for example: batch_mean(x) > 2"
    if isinstance(value, Tensor):
        way_out = "reduce it to one number, for example: … -> min(axis=-1)"
        if value.type.per == "example":
            way_out = "take its mean over the batch: … -> batch_mean"
    elaborator.report(errors.GrowthCondition(span=statement.condition.span, found=describe(value), way_out=way_out))
    return None


def _may_grow(pool: PoolEntity, router: RouterEntity, statement: ast.Grow, elaborator: Elaborator) -> bool:
    """Whether a pool's modules may grow by a router, and by no other statement; report it if not."""
    span, name, first = statement.span, statement.pool, elaborator.context.growing.get(pool.axis.name)
    of_types = _find_along(pool.axis, AxisEntity, elaborator.scope)
    if of_types or any(
        len(other.templates) > 1 for other in _find_along(pool.axis, PoolEntity, elaborator.scope).values()
    ):
        reason, way_out = OF_TYPES if of_types else (UNLIKE[0], "declare it as modules of one kind")
        elaborator.report(errors.CannotGrow(span=span, pool=name, reason=reason, way_out=way_out))
        return False
    if first is not None:
        notes = (Note(text="this condition is first", span=first),)
        elaborator.report(errors.GrowsTwice(span=span, pool=name, notes=notes))
        return False
    elaborator.context.spend(len(elaborator.graph), router.span)
    routes = any(each.pool.axis == pool.axis for each in elaborator.graph.decisions(router.path))
    if not routes and not elaborator.context.incomplete:
        elaborator.report(errors.GrowsByAnother(span=span, pool=name, router=statement.router))
    return routes
