"""One function per kind of statement, and the table that finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.blocks import take_operand
from modgraph.elaboration.calls import arguments_of, settle
from modgraph.elaboration.context import STATEMENT, Site
from modgraph.elaboration.entities import (
    POISON,
    Family,
    ModuleEntity,
    Poison,
    PoolEntity,
    RouterEntity,
    Template,
    Tensor,
    TensorTuple,
    described,
)
from modgraph.elaboration.expressions import constant, evaluate, tensor
from modgraph.elaboration.growth import elaborate_grow_by
from modgraph.elaboration.loops import elaborate_for, elaborate_frozen, elaborate_if, elaborate_repeat
from modgraph.elaboration.scans import carried_out, elaborate_scan, elaborate_yield, stands_in_scan
from modgraph.elaboration.scope import is_callable
from modgraph.elaboration.typing import elaborate_type
from modgraph.ir import MOST_MODULES, InputNode, LossNode, OutputNode, Result, TargetNode
from modgraph.routers import Router
from modgraph.syntax import ast
from modgraph.syntax.errors import NotThereYet
from modgraph.vocabulary import find_router


def elaborate_body(body: ast.Body, site: Site) -> None:
    """All statements of a body, in order."""
    for statement in body.statements:
        site.context.spend(STATEMENT, statement.span)
        STATEMENTS[type(statement)](statement, site)


def _target(statement: ast.Target, site: Site) -> None:
    if stands_in_scan(statement, "a target", "declare it before the scan", site):
        _remember(statement.reference, None, POISON, site)
        return
    reference = statement.reference
    if site.call is not None or site.region:
        site.tell(errors.WrongKind(span=statement.span, needed="a model's body", found="this is a block's"))
        return
    key = _key(reference, site)
    name = reference.name if key is None else f"{reference.name}.{key}"
    if key is POISON or (key is None and _is_taken(name, reference.span, site)):
        return
    _remember(reference, key, _from_outside(name, statement, TargetNode, site), site)


def _input(statement: ast.Input, site: Site) -> None:
    if _is_taken(statement.name, statement.span, site):
        return
    if site.call is not None:
        type_ = elaborate_type(statement.type, site)
        given = POISON if isinstance(type_, Poison) else take_operand(type_, statement.span, site)
        site.scope.declare(statement.name, given)
        return
    if stands_in_scan(statement, "an input", "declare it before the scan", site):
        site.scope.declare(statement.name, POISON)
        return
    if site.scope.outer is not None and not site.scope.is_body:
        found = "this is inside a loop or a branch"
        site.tell(errors.WrongKind(span=statement.span, needed="a model's or a block's body", found=found))
        site.scope.declare(statement.name, POISON)
        return
    site.scope.declare(statement.name, _from_outside(statement.name, statement, InputNode, site))


def _from_outside(name: str, statement: ast.Input | ast.Target, kind: Any, site: Site) -> Tensor | Poison:
    """A value that is given to the model: an input or a target."""
    type_ = elaborate_type(statement.type, site)
    if isinstance(type_, Poison):
        return POISON
    added = site.add(kind(name=name, types=(type_,), span=statement.span), statement.span)
    return Tensor(Result(name), type_, statement.span) if added else POISON


def _module(statement: ast.Module, site: Site) -> None:
    template = _template(statement.value, f'{statement.keyword} "{statement.name}"', site)
    _declare(statement, ModuleEntity, (template, site.scope.frozen), site)


def _pool(statement: ast.Pool, site: Site) -> None:
    what = f'pool "{statement.name}"'
    if isinstance(statement.value, ast.ListOf):
        templates = tuple(_template(item, what, site) for item in statement.value.items)
    else:
        templates = (_template(statement.value, what, site),)
    size = _size(statement, len(templates), site)
    facts = (size, POISON if POISON in templates else templates, site.scope.frozen)
    _declare(statement, PoolEntity, facts, site)


def _size(statement: ast.Pool, listed: int, site: Site) -> int | Poison:
    """How many modules a pool has: as many as its list, or the number in brackets."""
    unlike = isinstance(statement.value, ast.ListOf)
    if statement.size is None and unlike and listed:
        return listed
    if statement.size is None:
        site.tell(errors.PoolWithoutSize(span=statement.span, name=statement.name))
        return POISON
    size = constant(statement.size, site, "the size of a pool")
    if isinstance(size, Poison):
        return POISON
    if type(size) is int and 1 <= size <= MOST_MODULES and (not unlike or size == listed):
        return size
    advice = f"a size is a whole number from 1 to {MOST_MODULES}"
    if unlike:
        advice = f"its list has {listed} modules: leave the number out"
    what = "this is not a size the pool can have"
    site.tell(errors.TooLarge(span=statement.size.span, what=what, limit=MOST_MODULES, way_out=advice))
    return POISON


def _template(expression: ast.Expression, what: str, site: Site) -> Any:
    value = evaluate(expression, site)
    if isinstance(value, Template | ModuleEntity | Poison):
        return value
    found = f"this is {described(value)}"
    advice = "begin with an op, for example: linear(64) -> relu"
    needed = f"a pipeline that begins with an op, for {what},"
    site.tell(errors.WrongKind(span=expression.span, needed=needed, found=found, way_out=advice))
    return POISON


def _router(statement: ast.Router, site: Site) -> None:
    router = _settled_router(statement.value, site)
    _declare(statement, RouterEntity, (router, site.scope.frozen), site)


def _settled_router(value: ast.Expression, site: Site) -> Router | Poison:
    callee = value.callee if isinstance(value, ast.Call) else value
    if not isinstance(callee, ast.Name):
        found = "this is an expression"
        site.tell(errors.WrongKind(span=value.span, needed="the name of a router", found=found))
        return POISON
    declaration = find_router(callee.name)
    if declaration is None:
        suggestion = did_you_mean(callee.name, Router.registry, "routers are: {known}")
        site.tell(errors.UnknownOp(span=callee.span, name=callee.name, suggestion=suggestion))
        return POISON
    given = arguments_of(value, site) if isinstance(value, ast.Call) else []
    settled = settle(declaration, given, site, value.span)
    return settled if isinstance(settled, Poison) else settled.op


def _declare(statement: Any, kind: Any, facts: tuple[Any, ...], site: Site) -> None:
    if _is_taken(statement.name, statement.span, site):
        return
    path = site.scope.weights_below(statement.name)
    if site.context.declared.setdefault(path, statement.span) != statement.span:
        site.tell(errors.DuplicateName(span=statement.span, name=path))
        site.scope.declare(statement.name, POISON)
        return
    sound = not any(isinstance(fact, Poison) for fact in facts)
    site.scope.declare(statement.name, kind(path, *facts, statement.span) if sound else POISON)


def _is_taken(name: str, span: Span, site: Site) -> bool:
    if name in site.scope.names:
        site.tell(errors.DuplicateName(span=span, name=name))
        return True
    return False


def _binding(statement: ast.Binding, site: Site) -> None:
    keys = [_key(reference, site) for reference in statement.references]
    name = "_".join(reference.name for reference in statement.references)
    indexed = [key for key in keys if key is not None]
    if indexed and POISON not in keys:
        local = f"{name}.{'.'.join(map(str, indexed))}"
        place = site.under(site.scope.without_suffix().next_binding(local))
    else:
        place = _named_after(name, site)
    value = evaluate(statement.value, place)
    values = list(value.tensors) if isinstance(value, TensorTuple) else [value]
    if isinstance(value, Poison):
        values = [POISON] * len(keys)
    elif len(values) != len(keys):
        site.tell(errors.NamesAndResults(span=statement.span, names=len(keys), values=len(values)))
        values = [POISON] * len(keys)
    for reference, key, each in zip(statement.references, keys, values, strict=True):
        if carried_out(reference.name, site):
            site.tell(errors.NotAState(span=reference.span, name=reference.name))
        _bind(reference, key, each, statement, site)


def _key(reference: ast.Reference, site: Site) -> Any:
    """The member that `s[k]` names, or None for a plain name."""
    if reference.index is None:
        return None
    key = constant(reference.index, site, "an index")
    if isinstance(key, Poison) or type(key) is int or (isinstance(key, str) and key.isidentifier()):
        return key
    problem = f"a member is named by a whole number or a word, not by {described(key)}"
    site.tell(errors.BadIndex(span=reference.index.span, problem=problem))
    return POISON


def _bind(reference: ast.Reference, key: Any, value: Any, statement: ast.Binding, site: Site) -> None:
    if is_callable(value):
        advice = f"apply it to a value, or declare it: module {reference.name} = …"
        found = described(value)
        site.tell(errors.NotValue(span=statement.value.span, what="what is bound", found=found, way_out=advice))
        value = POISON
    if isinstance(site.scope.bound(reference.name), ModuleEntity | PoolEntity | RouterEntity):
        site.tell(errors.DuplicateName(span=reference.span, name=reference.name))
        return
    site.context.observe(reference.span, value)
    _remember(reference, key, value, site)


def _remember(reference: ast.Reference, key: Any, value: Any, site: Site) -> None:
    """Bind a name, or a member of a family, which is visible in the whole body."""
    if key is None or isinstance(key, Poison):
        site.scope.rebind(reference.name, value)
        return
    body = site.scope.body
    family = body.names.get(reference.name)
    if not isinstance(family, Family):
        if family is not None and not isinstance(family, Poison):
            advice = "a family needs a name of its own"
            site.tell(errors.DuplicateName(span=reference.span, name=reference.name, way_out=advice))
            return
        family = Family(reference.name, {})
        body.declare(reference.name, family)
    if isinstance(value, Poison):
        body.declare(reference.name, POISON)
    else:
        family.members[key] = value


def _named_after(name: str, site: Site) -> Site:
    """Where the right side of a statement stands: its inline ops are named after what it binds."""
    return site.under(site.scope.next_binding(name))


def _output(statement: ast.Output, site: Site) -> None:
    if site.call is None and stands_in_scan(statement, "an output", "yield it, and output what was yielded", site):
        return
    name = statement.name
    if name is None:
        if not isinstance(statement.value, ast.Name) and site.call is None:
            found = "this is an expression"
            advice = "give it a name: output NAME = …"
            site.tell(errors.WrongKind(span=statement.value.span, needed="a name", found=found, way_out=advice))
            return
        name = statement.value.name if isinstance(statement.value, ast.Name) else "output"
    local = name if site.call is not None else f"output.{name}"
    value = tensor(statement.value, _named_after(local, site), "an output")
    if site.call is not None:
        site.call.outputs.append(value)
    elif isinstance(value, Tensor):
        node = OutputNode(name=f"output.{site.scope.weights_below(name)}", span=statement.span)
        if node.name in site.graph:
            advice = "give it a name of its own: output NAME = …"
            site.tell(errors.DuplicateName(span=statement.span, name=name, way_out=advice))
            return
        site.add(node, statement.span, {"x": value.result})


def _loss(statement: ast.Loss, site: Site) -> None:
    if site.region:
        site.tell(errors.NotInRegion(span=statement.span, what="a loss"))
        return
    if stands_in_scan(statement, "a loss", "yield what it is of, and take the loss of what was yielded", site):
        return
    place = _named_after("loss" if statement.name is None else f"loss.{statement.name}", site)
    value = evaluate(statement.value, place)
    if isinstance(value, Poison) or value == 0.0:
        return
    if not isinstance(value, Tensor):
        site.tell(errors.NotValue(span=statement.value.span, what="a loss", found=described(value)))
        return
    if value.type.shape or value.type.dtype != "float":
        site.tell(errors.LossIsNotNumber(span=statement.value.span, found=str(value.type)))
        return
    site.add(LossNode(name=place.naming.node, span=statement.span), statement.span, {"x": value.result})


def _later(what: str) -> Callable[[Any, Site], None]:
    def tell(statement: ast.Statement, site: Site) -> None:
        site.tell(NotThereYet(span=statement.span, what=what))
        for name in getattr(statement, "names", ()):
            site.scope.declare(name, POISON)

    return tell


STATEMENTS: dict[type[ast.Statement], Callable[[Any, Site], None]] = {
    ast.Input: _input,
    ast.Target: _target,
    ast.Module: _module,
    ast.Pool: _pool,
    ast.Router: _router,
    ast.Binding: _binding,
    ast.Output: _output,
    ast.Loss: _loss,
    ast.Repeat: elaborate_repeat,
    ast.For: elaborate_for,
    ast.If: elaborate_if,
    ast.Frozen: elaborate_frozen,
    ast.Scan: elaborate_scan,
    ast.Grow: _later('"grow … when"'),
    ast.GrowBy: elaborate_grow_by,
    ast.Yield: elaborate_yield,
}
