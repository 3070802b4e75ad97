"""`grow pool[2]`: modules more than a pool was declared with, trained where the others are frozen."""

from __future__ import annotations

from dataclasses import replace

from modgraph.diagnostics import did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.entities import Poison, PoolEntity, described
from modgraph.elaboration.scope import Scope
from modgraph.elaboration.site import Site
from modgraph.ir import MOST_MODULES
from modgraph.syntax import ast
from modgraph.types import Axis


def elaborate_grow_by(statement: ast.GrowBy, site: Site) -> None:
    pool = _pool(statement, site)
    by = site.constant(statement.by, "the number of modules to add")
    if pool is None or isinstance(by, Poison):
        return
    reason = _problem(pool, by, site)
    if reason is not None:
        site.tell(errors.CannotGrow(span=statement.span, pool=statement.pool, reason=reason[0], way_out=reason[1]))
    elif by:
        for name, other in _pools_along(pool.axis, site.scope).items():
            site.scope.rebind(name, replace(other, size=other.size + by, grown=other.grown + by))


def _pools_along(axis: Axis, scope: Scope) -> dict[str, PoolEntity]:
    """The pools whose modules have an axis, by their names in a scope."""
    outer = _pools_along(axis, scope.outer) if scope.outer is not None else {}
    own = {name: pool for name, pool in scope.names.items() if isinstance(pool, PoolEntity) and pool.axis == axis}
    return outer | own


def _pool(statement: ast.GrowBy, site: Site) -> PoolEntity | None:
    found = site.scope.find(statement.pool)
    if isinstance(found, PoolEntity):
        return found
    if found is None:
        known = site.visible(statement.span, lambda value: isinstance(value, PoolEntity))
        suggestion = (
            did_you_mean(statement.pool, known, "the pools here: {known}")
            if known
            else "declare it first: pool NAME[2] = …"
        )
        site.tell(errors.UnknownName(span=statement.span, name=statement.pool, suggestion=suggestion))
    elif not isinstance(found, Poison):
        needed, what = "a pool", f"{statement.pool} is {described(found)}"
        site.tell(errors.WrongKind(span=statement.span, needed=needed, found=what))
    return None


def _problem(pool: PoolEntity, by: object, site: Site) -> tuple[str, str] | None:
    """Why a pool cannot grow by so many, and the way out."""
    if type(by) is not int or not 0 <= by <= MOST_MODULES - pool.size:
        return "it grows by a whole number of modules", f"from 0 to {MOST_MODULES - pool.size}, as in: grow p[1]"
    if any(other.path in site.context.named for other in _pools_along(pool.axis, site.scope).values()):
        return "it has been used already, with the modules it had", "let it grow before its first use"
    if len(pool.templates) > 1:
        return "its modules are unlike, so a new one is none of them", "add the module to the pool's list"
    return None
