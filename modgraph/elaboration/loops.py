"""Elaborates statements with bodies (repeat, for, if, frozen) and the families that they declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modgraph.elaboration import errors
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, Family, Poison, PoolEntity, describe
from modgraph.elaboration.rounds import Rounds
from modgraph.syntax import ast
from modgraph.types import is_key


def elaborate_loop(statement: ast.Loop, elaborator: Elaborator) -> None:
    """Elaborate the iterations of a loop.

    Those of a `repeat` have scopes with their own paths (`blocks.8`). Names in a `for` end in a key (`s.0`).
    """
    domain: Any = POISON
    if statement.name and isinstance(elaborator.scope.find_bound(statement.name), PoolEntity):
        elaborator.report(
            errors.DuplicateName(span=statement.span, name=statement.name)
        )  # the names of its modules, `pool.0`, would clash
    else:
        domain = elaborator.evaluate_constant(statement.domain, "the domain of a loop")
        if not isinstance(domain, range | tuple | Poison):
            problem = f"a loop needs a range or a list, not {describe(domain)}"
            elaborator.report(
                errors.Arithmetic(span=statement.domain.span, problem=problem, way_out="for example: 0..4")
            )
    if not isinstance(domain, range | tuple):
        poison_declared(statement.body, elaborator)
        return
    families = _list_families((statement.body,), elaborator)
    rounds = Rounds(statement, elaborator) if statement.name else None
    keyword = "repeat" if statement.name else "for"
    more = max(0, domain.stop - domain.start) if isinstance(domain, range) else len(domain)  # `len` has a limit
    elaborator.context.count("iterations", more, statement.span)
    for key, value in zip(_find_keys(domain), domain, strict=True):
        scope = (
            elaborator.scope.nest(f"{statement.name}.{key}")
            if statement.name
            else elaborator.scope.nest(suffix=f".{key}")
        )
        scope.declare(statement.variable, value)
        if rounds is None:
            elaborator.with_scope(scope).elaborate(statement.body)
        else:
            rounds.elaborate(key, scope)
        for name, members in families.items():
            if name in scope.names:
                _gather(members, value, scope.names[name])
        elaborator.scope.end(scope.ended, keyword)
    elaborator.scope.end(statement.body.bound, keyword)
    _declare_families(families, elaborator)


def _find_keys(domain: range | tuple[Any, ...]) -> Sequence[Any]:
    """Return the keys of iterations: values, or positions where a value is no key; positions if keys would repeat."""
    keys = [value if is_key(value) else place for place, value in enumerate(domain)]
    same = len({*map(str, keys)}) < len(keys) and not all(map(is_key, domain))
    return range(len(keys)) if same else keys


def elaborate_if(statement: ast.If, elaborator: Elaborator) -> None:
    """Elaborate the branch that a constant selects; its declarations and the names of both branches stay visible."""
    condition = elaborator.evaluate_constant(statement.condition, "a condition")
    if not isinstance(condition, bool):
        if not isinstance(condition, Poison):
            problem = f"a condition must be true or false, not {describe(condition)}"
            elaborator.report(
                errors.Arithmetic(span=statement.condition.span, problem=problem, way_out="compare it: x == 1")
            )
        for body in statement.bodies:
            poison_declared(body, elaborator)
        elaborator.scope.names |= dict.fromkeys(statement.bound, POISON)
        return
    taken = statement.then if condition else statement.otherwise
    families = _list_families(statement.bodies, elaborator)
    scope = elaborator.scope.nest()
    if taken is not None:
        elaborator.with_scope(scope).elaborate(taken)
    elaborator.scope.end([*scope.ended, *(name for body in statement.bodies for name in body.bound)], "if")
    for name in statement.bound:
        if name in scope.names:
            elaborator.scope.declare(name, scope.names[name])
    for name, members in families.items():
        if name in scope.names and name not in elaborator.scope.names:
            elaborator.scope.declare(name, scope.names[name])
        elif name in scope.names:
            _gather(members, 0, scope.names[name])
    _declare_families(families, elaborator)


def elaborate_frozen(statement: ast.Frozen, elaborator: Elaborator) -> None:
    """Elaborate a body whose weights are not trained. Its names belong to the enclosing body."""
    scope = elaborator.scope.nest(frozen=True)
    scope.names = elaborator.scope.names
    elaborator.with_scope(scope).elaborate(statement.body)


def _list_families(bodies: tuple[ast.Body, ...], elaborator: Elaborator) -> dict[str, dict[Any, Any]]:
    names = [name for body in bodies for name in body.declared]
    elaborator.context.spend(len(names), bodies[0].span)
    return {name: {} for name in names}


def _gather(members: dict[Any, Any], key: Any, entity: Any) -> None:
    """Add an entity that an iteration declared to a family; nested families are flattened."""
    if not isinstance(entity, Family):
        members[key] = entity
        return
    for inner, member in entity.members.items():
        members[key if len(entity.members) == 1 else (key, inner)] = member


def _declare_families(families: dict[str, dict[Any, Any]], elaborator: Elaborator) -> None:
    for name, members in families.items():
        known = elaborator.scope.names.get(name)
        if isinstance(known, Family):
            known.members.update({(len(known.members), key): each for key, each in members.items()})
        elif known is None and (members or elaborator.scope.find(name) is None):
            elaborator.scope.declare(name, Family(name, members))


def poison_declared(body: ast.Body, elaborator: Elaborator) -> None:
    """Declare the names of a body that could not be elaborated as poison."""
    elaborator.scope.names |= dict.fromkeys(body.declared, POISON)
    elaborator.scope.body.names |= dict.fromkeys(body.families, POISON)
