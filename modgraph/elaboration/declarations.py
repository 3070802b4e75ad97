"""Modules, pools and routers, as they are declared."""

from __future__ import annotations

from typing import Any

from modgraph.elaboration import errors
from modgraph.elaboration.bindings import is_taken
from modgraph.elaboration.blocks import use_block
from modgraph.elaboration.calls import CallArgument, arguments_of, settle
from modgraph.elaboration.context import Declared
from modgraph.elaboration.entities import (
    POISON,
    AxisEntity,
    Entity,
    ModuleEntity,
    Poison,
    PoolEntity,
    RouterEntity,
    RouterUse,
    Template,
    WithAxis,
    described,
    is_passed,
)
from modgraph.elaboration.imports import prelude_router
from modgraph.elaboration.site import Site
from modgraph.ir import MOST_MODULES
from modgraph.routers import Router
from modgraph.syntax import ast
from modgraph.vocabulary import find_router, router_meant


def declare_module(statement: ast.Module, site: Site) -> None:
    template = _template(statement.value, f'{statement.keyword} "{statement.name}"', site)
    _declare(statement, ModuleEntity, site, template=template, word=statement.name)


def declare_pool(statement: ast.Pool, site: Site) -> None:
    what = f'pool "{statement.name}"'
    listed = _listed(statement.value, what, site)
    templates = listed if listed is not None else (_template(statement.value, what, site),)
    axis = _shared(statement, site) if listed is None else None
    size = axis.size if isinstance(axis, PoolEntity | AxisEntity) else axis
    size = _size(statement, None if listed is None else len(listed), site) if size is None else size
    facts: dict[str, Any] = {"alone": isinstance(statement.size, ast.Literal), "word": statement.name}
    if isinstance(axis, PoolEntity):
        facts |= {"alone": axis.alone, "grown": axis.grown, "shares": axis.shares or axis.path}
    elif isinstance(axis, AxisEntity):
        facts["shares"] = axis.path
    facts |= {"size": size, "templates": POISON if POISON in templates else templates, "within": site.context.call}
    _declare(statement, PoolEntity, site, **facts)


def _listed(value: ast.Expression, what: str, site: Site) -> tuple[Any, ...] | None:
    """The modules of a list, which is written here or was given as an argument; None if it is none."""
    if isinstance(value, ast.ListOf):
        return tuple(_template(item, what, site) for item in value.items)
    given = site.scope.find(value.name) if isinstance(value, ast.Name) else None
    return tuple(_checked(each, value, what, site) for each in given) if isinstance(given, tuple) and given else None


def _shared(statement: ast.Pool, site: Site) -> WithAxis | Poison | None:
    """The pool whose axis this one has too, or an axis: `pool descriptors[experts] = …`, one module for each expert."""
    if not isinstance(statement.size, ast.Name):
        return None
    found = site.scope.find(statement.size.name)
    if not isinstance(found, WithAxis):
        return None
    if site.region and not (isinstance(found, PoolEntity) and found.inside == site.region):
        advice = f"say how many modules it has: pool {statement.name}[len({statement.size.name})] = …"
        what = f'a pool along the axis "{found.path}"'
        return site.tell(errors.NotInRegion(span=statement.size.span, what=what, way_out=advice))
    return found


def _size(statement: ast.Pool, listed: int | None, site: Site) -> int | Poison:
    """How many modules a pool has: as many as its list, or the number in brackets."""
    unlike = listed is not None
    if statement.size is None and unlike and listed:
        return listed
    if statement.size is None:
        return site.tell(errors.PoolWithoutSize(span=statement.span, name=statement.name))
    size = site.evaluate(statement.size)
    if isinstance(size, Poison):
        return POISON
    if isinstance(size, Entity):
        what, advice = "the size of a pool", "a number, or a pool whose axis its modules share: pool q[p] = linear(4)"
        if isinstance(size, PoolEntity):
            advice = "pools that share an axis have modules of one kind: pool q[p] = linear(4)"
        return site.tell(errors.NotConstant(span=statement.size.span, what=what, found=described(size), way_out=advice))
    if type(size) is int and 1 <= size <= MOST_MODULES and (not unlike or size == listed):
        return size
    advice = f"a size is a whole number from 1 to {MOST_MODULES}"
    if unlike:
        advice = f"its list has {listed} modules: leave the number out"
    what = "this is not a size the pool can have"
    return site.tell(errors.TooLarge(span=statement.size.span, what=what, limit=MOST_MODULES, way_out=advice))


def _template(expression: ast.Expression, what: str, site: Site) -> Any:
    return _checked(site.evaluate(expression), expression, what, site)


def _checked(value: Any, expression: ast.Expression, what: str, site: Site) -> Any:
    """What the modules of a pool, or a module, may be made of; else told."""
    if isinstance(value, Template | ModuleEntity | Poison):
        return value
    span, notes = site.at_fault(expression)
    found = f"this is {described(value)}"
    advice = "begin with an op, for example: linear(64) -> relu"
    needed = f"a pipeline that begins with an op, for {what},"
    return site.tell(errors.WrongKind(span=span, notes=notes, needed=needed, found=found, way_out=advice))


def declare_router(statement: ast.Router, site: Site) -> None:
    router = _settled_router(statement.value, site)
    _declare(statement, RouterEntity, site, router=router, within=site.context.call)


def _settled_router(
    value: ast.Expression, site: Site, further: tuple[CallArgument, ...] = ()
) -> Router | RouterUse | Poison:
    """A kind of router with its arguments, `further` ones where it was passed as an argument itself."""
    callee = value.callee if isinstance(value, ast.Call) else value
    if not isinstance(callee, ast.Name):
        found = "this is an expression"
        return site.tell(errors.WrongKind(span=value.span, needed="the name of a router", found=found))
    passed = site.scope.find(callee.name, is_passed)
    if passed is not None:
        return _passed_router(passed, value, (*arguments_of(value, site, of_op=False), *further), site)
    defined = site.scope.find_router(callee.name) or prelude_router(callee.name)
    if defined is not None:
        use = use_block(defined, [*arguments_of(value, site, of_op=False), *further], site, value.span)
        return (
            POISON
            if isinstance(use, Poison)
            else RouterUse(use.block, use.parameters, spans=use.spans, defaults=use.defaults)
        )
    declaration = find_router(callee.name)
    if declaration is None:
        _tell_unknown_router(callee, site)
        return POISON
    own = arguments_of(value, site) if isinstance(value, ast.Call) else []
    settled = settle(declaration, [*own, *further], site, value.span)
    return settled if isinstance(settled, Poison) else settled.op


def _passed_router(
    passed: Template, value: ast.Expression, further: tuple[CallArgument, ...], site: Site
) -> Router | RouterUse | Poison:
    if passed.term is not None:
        with site.context.applying(passed.span, value.span):
            return _settled_router(passed.term, site.where_written(passed), further)
    span, notes = site.at_fault(value.callee if isinstance(value, ast.Call) else value)
    found, way_out = "this is a pipeline", "give a kind of router, for example: agreement(2)"
    return site.tell(errors.WrongKind(span=span, notes=notes, needed="a kind of router", found=found, way_out=way_out))


def _tell_unknown_router(callee: ast.Name, site: Site) -> None:
    found = site.scope.find(callee.name)
    if isinstance(found, Poison):
        return
    span, notes = site.at_fault(callee)
    if found is None or not notes:
        suggestion = router_meant(callee.name, site.scope.router_names())
        site.tell(errors.UnknownOp(span=callee.span, name=callee.name, kind="router", suggestion=suggestion))
        return
    way_out = f"give a kind of router, for example: {callee.name}=agreement(2)"
    if isinstance(found, RouterEntity):
        way_out = f"one that is declared routes as it is: x -> pool by {callee.name}"
    facts: Any = {"needed": "a kind of router", "found": f"this is {described(found)}", "way_out": way_out}
    site.tell(errors.WrongKind(span=span, notes=notes, **facts))


def _declare(statement: Any, kind: Any, site: Site, **facts: Any) -> None:
    if is_taken(statement.name, statement.span, site):
        return
    path = site.scope.weights_below(statement.name)
    block = site.call.name if site.call is not None else None
    declared = Declared(statement.name, statement.span, block, block is not None and site.scan is not None)
    if not site.region and site.context.declared.setdefault(path, declared) != declared:
        site.tell(errors.DuplicateName(span=statement.span, name=path))
        site.scope.declare(statement.name, POISON)
        return
    sound = not any(isinstance(fact, Poison) for fact in facts.values())
    facts |= {"path": path, "frozen": site.scope.frozen, "inside": site.region, "span": statement.span}
    site.scope.declare(statement.name, kind(**facts) if sound else POISON)
