"""Statements that hold bodies: repeat, for, if, frozen; and the families that bodies leave behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from modgraph.elaboration import errors
from modgraph.elaboration.entities import POISON, Family, Poison, PoolEntity, described
from modgraph.elaboration.rounds import Rounds
from modgraph.elaboration.scope import Scope
from modgraph.elaboration.site import Site
from modgraph.ir import Call
from modgraph.syntax import ast
from modgraph.types import is_key


def elaborate_repeat(statement: ast.Repeat, site: Site) -> None:
    """Each iteration in a scope with a path of its own: `blocks.8`."""
    if isinstance(site.scope.bound(statement.name), PoolEntity):  # whose modules are called `pool.0` too
        site.tell(errors.DuplicateName(span=statement.span, name=statement.name))
        poison_declared(statement.body, site)
        return
    _iterate(statement, statement.variable, site, lambda key: site.scope.inside(path=f"{statement.name}.{key}"))


def _round(statement: ast.Repeat, key: Any, members: frozenset[str], scope: Scope, site: Site) -> Call:
    """One round of a loop as a call."""
    facts: Any = {"key": key, "members": members, "span": statement.span}
    return Call("round", statement.name, scope.node_path, scope.path, site.context.call, **facts)


def _members(body: ast.Body, variable: str) -> Iterator[str]:
    """The names, as those of nodes begin, that a body gives the loop's variable as a key: `h[i] = …`."""
    for statement in body.statements:
        match statement:
            case ast.Binding(references=references):
                named = [("_".join(each.name for each in references), each) for each in references]
            case ast.Loss(reference=ast.Reference() as reference):
                named = [(f"loss.{reference.name}", reference)]
            case ast.Output(reference=ast.Reference() as reference):
                named = [(reference.name, reference), (f"output.{reference.name}", reference)]
            case ast.Input(reference=reference) | ast.Target(reference=reference):
                named = [(reference.name, reference)]
            case _:
                named = []
                for part in vars(statement).values():
                    if isinstance(part, ast.Body):
                        yield from _members(part, variable)
        for name, reference in named:
            if isinstance(reference.index, ast.Name) and reference.index.name == variable:
                yield name


def elaborate_for(statement: ast.For, site: Site) -> None:
    """Each iteration's names end in its key: `s.0`."""
    _iterate(statement, statement.variable, site, lambda key: site.scope.inside(suffix=f".{key}"))


def _iterate(statement: ast.Repeat | ast.For, variable: str, site: Site, scope_of: Any) -> None:
    domain = site.constant(statement.domain, "what a loop runs over")
    if not isinstance(domain, range | tuple):
        if not isinstance(domain, Poison):
            problem = f"a loop runs over a range or a list, not {described(domain)}"
            advice = "for example: 0..4"
            site.tell(errors.Arithmetic(span=statement.domain.span, problem=problem, way_out=advice))
        poison_declared(statement.body, site)
        return
    keyword = "repeat" if isinstance(statement, ast.Repeat) else "for"
    families = _families([statement.body], site)
    rounds = Rounds(statement, site) if isinstance(statement, ast.Repeat) else None
    keyed = frozenset(_members(statement.body, variable))
    site.context.count_iterations(domain, statement.span)
    for key, value in zip(_keys_of(domain), domain, strict=True):
        scope: Scope = scope_of(key)
        scope.declare(variable, value)
        if rounds is not None:
            rounds.elaborate(_round(rounds.statement, key, keyed, scope, site), scope)
        else:
            site.within(scope).elaborate(statement.body)
        for name, members in families.items():
            if name in scope.names:
                _gather(members, value, scope.names[name])
        site.scope.end(scope.ended, keyword)
    site.scope.end(statement.body.bound, keyword)
    _declare_families(families, site)


def _keys_of(domain: range | tuple[Any, ...]) -> Sequence[Any]:
    """The keys of iterations in names: their values, or their places where a value is no key; places for all where two
    keys would be the same."""
    keys = [value if is_key(value) else place for place, value in enumerate(domain)]
    by_place = [place for place, value in enumerate(domain) if not is_key(value)]
    return range(len(keys)) if by_place and len({*map(str, keys)}) < len(keys) else keys


def elaborate_if(statement: ast.If, site: Site) -> None:
    """The branch that the condition, a constant, chooses. What it declares is what its names mean afterwards, and a
    value that both branches name."""
    condition = site.constant(statement.condition, "a condition")
    bodies = [statement.then] + ([statement.otherwise] if statement.otherwise else [])
    if not isinstance(condition, bool):
        if not isinstance(condition, Poison):
            problem = f"a condition is true or false, not {described(condition)}"
            advice = "compare it: x == 1"
            site.tell(errors.Arithmetic(span=statement.condition.span, problem=problem, way_out=advice))
        for body in bodies:
            poison_declared(body, site)
        for name in _in_both(statement):
            site.scope.declare(name, POISON)
        return
    taken = statement.then if condition else statement.otherwise
    families = _families(bodies, site)
    scope = site.scope.inside()
    if taken is not None:
        site.within(scope).elaborate(taken)
    site.scope.end([*scope.ended, *(name for body in bodies for name in body.bound)], "if")
    for name in _in_both(statement):
        if name in scope.names:
            site.scope.declare(name, scope.names[name])
    for name, members in families.items():
        if name in scope.names and name not in site.scope.names:
            site.scope.declare(name, scope.names[name])
        elif name in scope.names:
            _gather(members, 0, scope.names[name])
    _declare_families(families, site)


def _in_both(statement: ast.If) -> frozenset[str]:
    """The values that both branches name."""
    return frozenset() if statement.otherwise is None else statement.then.bound & statement.otherwise.bound


def elaborate_frozen(statement: ast.Frozen, site: Site) -> None:
    """A body whose weights are not trained. Its names are those of the body around it."""
    scope = site.scope.inside(frozen=True)
    scope.names = site.scope.names
    site.within(scope).elaborate(statement.body)


def _families(bodies: list[ast.Body], site: Site) -> dict[str, dict[Any, Any]]:
    """An empty family for every name that some bodies declare."""
    names = [name for body in bodies for name in body.declared]
    site.context.spend(len(names), bodies[0].span)
    return {name: {} for name in names}


def _gather(members: dict[Any, Any], key: Any, entity: Any) -> None:
    """Put what an iteration declared under its key; a family within gives its members one by one."""
    if isinstance(entity, Family):
        for inner, member in entity.members.items():
            members[key if len(entity.members) == 1 else (key, inner)] = member
    else:
        members[key] = entity


def _declare_families(families: dict[str, dict[Any, Any]], site: Site) -> None:
    for name, members in families.items():
        known = site.scope.names.get(name)
        if isinstance(known, Family):
            round_ = len(known.members)
            known.members.update({(round_, key): each for key, each in members.items()})
        elif known is None and (members or site.scope.find(name) is None):
            site.scope.declare(name, Family(name, members))


def poison_declared(body: ast.Body, site: Site) -> None:
    """Nothing follows from the names of a body that could not be elaborated."""
    for name in body.declared:
        site.scope.declare(name, POISON)
    for name in body.families:
        site.scope.body.declare(name, POISON)
