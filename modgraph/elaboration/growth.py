"""Growth: modules more than a pool was declared with, and when a pool is to get more while it is trained.

`grow pool[2]` adds modules that are trained where the others are frozen. `grow pool by router when … where …` puts a
node into the graph, which a training over several tasks asks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from modgraph.diagnostics import Note, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.bindings import named_after
from modgraph.elaboration.entities import (
    AxisEntity,
    Entity,
    Family,
    Poison,
    PoolEntity,
    RouterEntity,
    Tensor,
    described,
)
from modgraph.elaboration.scans import stands_in_scan
from modgraph.elaboration.scope import Scope
from modgraph.elaboration.site import Site
from modgraph.ir import MOST_MODULES, GrowthNode
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType

E = TypeVar("E", PoolEntity, RouterEntity)
WORDS: dict[type[Entity], str] = {PoolEntity: "pool", RouterEntity: "router"}
OF_TYPES = "its modules are those of an axis of a type", "give the pool a size of its own, a number"
EXAMPLES: dict[type[Entity], str] = {PoolEntity: "pool NAME[2] = …", RouterEntity: "router NAME = …"}


def elaborate_grow_by(statement: ast.GrowBy, site: Site) -> None:
    if site.region:
        site.tell(errors.NotInRegion(span=statement.span, what="growth"))
        return
    pool = _declared(statement.pool, PoolEntity, statement, site)
    by = site.constant(statement.by, "the number of modules to add")
    if pool is None or isinstance(by, Poison):
        return
    reason = _problem(pool, by, site)
    if reason is not None:
        site.tell(errors.CannotGrow(span=statement.span, pool=statement.pool, reason=reason[0], way_out=reason[1]))
    elif by:
        for name, other in _pools_along(pool.axis, site.scope).items():
            site.scope.rebind(name, replace(other, size=other.size + by, grown=other.grown + by))


def _is_of_types(axis: Axis, scope: Scope) -> bool:
    """Whether an axis of modules is one that a type declares."""
    known = (each for here in scope.chain() for each in here.names.values())
    return any(isinstance(each, AxisEntity) and each.axis == axis for each in known)


def _pools_along(axis: Axis, scope: Scope) -> dict[str, PoolEntity]:
    """The pools whose modules have an axis, by their names in a scope."""
    known = (item for here in reversed([*scope.chain()]) for item in here.names.items())
    return {name: each for name, each in known if isinstance(each, PoolEntity) and each.axis == axis}


def _declared(name: str, kind: type[E], statement: ast.GrowBy | ast.Grow, site: Site) -> E | None:
    """The pool or the router of a name; None after a told mistake."""
    found = site.scope.find(name)
    if isinstance(found, kind):
        return found
    word = WORDS[kind]
    if found is None:
        known = site.visible(statement.span, lambda value: isinstance(value, kind))
        declare = f"declare it first: {EXAMPLES[kind]}"
        suggestion = did_you_mean(name, known, f"the {word}s here: {{known}}") if known else declare
        site.tell(errors.UnknownName(span=statement.span, name=name, suggestion=suggestion))
    elif not isinstance(found, Poison):
        way_out = "let each grow where it is declared, in the same loop" if isinstance(found, Family) else ""
        facts: Any = {"needed": f"a {word}", "found": f"{name} is {described(found)}", "way_out": way_out}
        site.tell(errors.WrongKind(span=statement.span, **facts))
    return None


def _problem(pool: PoolEntity, by: object, site: Site) -> tuple[str, str] | None:
    """Why a pool cannot grow by so many, and the way out."""
    if type(by) is not int or not 0 <= by <= MOST_MODULES - pool.size:
        return "it grows by a whole number of modules", f"from 0 to {MOST_MODULES - pool.size}, as in: grow p[1]"
    if _is_of_types(pool.axis, site.scope):
        return OF_TYPES
    if any(other.path in site.context.named for other in _pools_along(pool.axis, site.scope).values()):
        return "it has been used already, with the modules it had", "let it grow before its first use"
    if len(pool.templates) > 1:
        return "its modules are unlike, so a new one is none of them", "add the module to the pool's list"
    return None


# ---------------------------------------------------------------- growth in training


def elaborate_grow(statement: ast.Grow, site: Site) -> None:
    """Put in when a pool is to grow, unless what stands behind `where` is false."""
    if not _may_stand(statement, site):
        return
    pool = _declared(statement.pool, PoolEntity, statement, site)
    router = _declared(statement.router, RouterEntity, statement, site)
    if pool is not None:
        site.context.may_grow.add(pool.axis.name)
    if not _is_wanted(statement, site):
        return
    when = _condition(statement, site)
    if pool is None or router is None or when is None or not _may_grow(pool, router, statement, site):
        return
    site.context.growing[pool.axis.name] = statement.span
    uses = {"pool": pool.path, "router": router.path}
    assert all(map(site.shares, uses.values())), "what routes is in the graph, or in one of a scan"
    node = GrowthNode(name=f"{pool.path}.growth", span=statement.span)
    site.add(node, statement.span, {"when": when.result}, uses)


def _may_stand(statement: ast.Grow, site: Site) -> bool:
    """Growth stands where a model's modules do, and outside of steps."""
    if site.region:
        site.tell(errors.NotInRegion(span=statement.span, what="growth"))
        return False
    if site.decision is not None:
        found, way_out = "this is a router's", f"a model says it: {statement.span.text.splitlines()[0]}"
        facts: Any = {"needed": "a model's or a block's body", "found": found, "way_out": way_out}
        site.tell(errors.WrongKind(span=statement.span, **facts))
        return False
    return not stands_in_scan(statement, "growth", "let the pool grow behind the scan", site)


def _is_wanted(statement: ast.Grow, site: Site) -> bool:
    """What stands behind `where`, which is constant."""
    if statement.where is None:
        return True
    wanted = site.constant(statement.where, "where a pool grows")
    if not isinstance(wanted, bool | Poison):
        problem = f"where a pool grows is true or false, not {described(wanted)}"
        site.tell(errors.Arithmetic(span=statement.where.span, problem=problem, way_out="compare it: i >= 9"))
    return wanted is True


def _condition(statement: ast.Grow, site: Site) -> Tensor | None:
    """What decides: a number for the whole batch; None after a told mistake."""
    value = named_after(f"grow_{statement.pool}", site).evaluate(statement.condition)
    if isinstance(value, Poison) or (isinstance(value, Tensor) and value.type == TensorType("float", per="batch")):
        return value if isinstance(value, Tensor) else None
    way_out = "compute it from values of the batch, for example: batch_mean(x) > 2"
    if isinstance(value, Tensor):
        way_out = "reduce it to one number, for example: … -> min(axis=-1)"
        if value.type.per == "example":
            way_out = "take its mean over the batch: … -> batch_mean"
    found = described(value)
    site.tell(errors.GrowthCondition(span=statement.condition.span, found=found, way_out=way_out))
    return None


def _may_grow(pool: PoolEntity, router: RouterEntity, statement: ast.Grow, site: Site) -> bool:
    """Whether a pool's modules may grow by what a router tells, and nothing else says so."""
    others = _pools_along(pool.axis, site.scope)
    first = site.context.growing.get(pool.axis.name)
    of_types = _is_of_types(pool.axis, site.scope)
    if of_types or any(len(other.templates) > 1 for other in others.values()):
        unlike = "its modules are unlike, so a new one is none of them", "declare it as modules of one kind"
        reason, way_out = OF_TYPES if of_types else unlike
        site.tell(errors.CannotGrow(span=statement.span, pool=statement.pool, reason=reason, way_out=way_out))
    elif first is not None:
        notes = (Note(text="they grow by this already", span=first),)
        site.tell(errors.GrowsTwice(span=statement.span, pool=statement.pool, notes=notes))
    elif _routes(pool, router, site):
        return True
    elif not site.context.incomplete:
        pool_name, router_name = statement.pool, statement.router
        site.tell(errors.GrowsByAnother(span=statement.span, pool=pool_name, router=router_name))
    return False


def _routes(pool: PoolEntity, router: RouterEntity, site: Site) -> bool:
    """Whether a router has sent something along the axis of a pool's modules."""
    site.context.spend(len(site.graph), router.span)
    return any(each.pool.axis == pool.axis for each in site.graph.decisions(router.path))
