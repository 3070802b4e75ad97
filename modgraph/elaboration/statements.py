"""One function per kind of statement, and the table that finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.calls import arguments_of, settle
from modgraph.elaboration.context import MOST_MODULES, Here
from modgraph.elaboration.entities import (
    POISON,
    Bound,
    Family,
    ModuleEntity,
    Poison,
    PoolEntity,
    RouterEntity,
    Several,
    Template,
    Tensor,
    described,
)
from modgraph.elaboration.expressions import constant, evaluate, tensor
from modgraph.elaboration.scope import Naming, join
from modgraph.elaboration.typing import elaborate_type
from modgraph.ir import InputNode, LossNode, OutputNode, Result, TargetNode
from modgraph.syntax import ast
from modgraph.syntax.errors import NotThereYet
from modgraph.vocabulary import find_router


def elaborate_body(body: ast.Body, here: Here) -> None:
    """All statements of a body, in order."""
    for statement in body.statements:
        STATEMENTS[type(statement)](statement, here)


def _input(statement: ast.Input, here: Here) -> None:
    _value_from_outside(statement.name, statement, InputNode, here)


def _target(statement: ast.Target, here: Here) -> None:
    if statement.reference.index is not None:
        here.tell(NotThereYet(span=statement.reference.span, what="a family of targets"))
        here.scope.declare(statement.reference.name, POISON)
        return
    _value_from_outside(statement.reference.name, statement, TargetNode, here)


def _value_from_outside(name: str, statement: ast.Input | ast.Target, kind: Any, here: Here) -> None:
    if here.scope.path:
        here.tell(NotThereYet(span=statement.span, what=f"{kind.kind} inside a repeat"))
        return
    if _is_taken(name, statement.span, here):
        return
    type_ = elaborate_type(statement.type, here)
    if isinstance(type_, Poison):
        here.scope.declare(name, POISON)
        return
    node = kind(name=name, types=(type_,), span=statement.span)
    added = here.add(node, statement.span)
    here.scope.declare(name, Tensor(Result(name), type_, statement.span) if added else POISON)


def _module(statement: ast.Module, here: Here) -> None:
    template = _template(statement.value, f'{statement.keyword} "{statement.name}"', here)
    _declare(statement.name, ModuleEntity, template, statement.span, here)


def _pool(statement: ast.Pool, here: Here) -> None:
    if statement.size is None:
        what = "a list of unlike modules" if isinstance(statement.value, ast.ListOf) else "a pool without a size"
        advice = f"write how many modules it has: pool {statement.name}[4] = …"
        here.tell(NotThereYet(span=statement.span, what=what, way_out=advice))
        here.scope.declare(statement.name, POISON)
        return
    size = constant(statement.size, here, "the size of a pool")
    template = _template(statement.value, f'pool "{statement.name}"', here)
    if not isinstance(size, Poison) and (type(size) is not int or not 1 <= size <= MOST_MODULES):
        advice = f"a size is a whole number from 1 to {MOST_MODULES}"
        span = statement.size.span
        here.tell(
            errors.TooLarge(span=span, what="this is not a size a pool can have", limit=MOST_MODULES, way_out=advice)
        )
        size = POISON
    if isinstance(size, Poison) or isinstance(template, Poison):
        here.scope.declare(statement.name, POISON)
        return
    _declare(statement.name, PoolEntity, size, template, statement.span, here)


def _template(expression: ast.Expression, what: str, here: Here) -> Any:
    value = evaluate(expression, here)
    if isinstance(value, Template | ModuleEntity | Poison):
        return value
    found = f"this is {described(value)}"
    advice = "begin with an op, for example: linear(64) -> relu"
    needed = f"a pipeline that begins with an op, for {what},"
    here.tell(errors.WrongKind(span=expression.span, needed=needed, found=found, way_out=advice))
    return POISON


def _router(statement: ast.Router, here: Here) -> None:
    value = statement.value
    callee = value.callee if isinstance(value, ast.Call) else value
    if not isinstance(callee, ast.Name):
        found = "this is an expression"
        here.tell(errors.WrongKind(span=value.span, needed="the name of a router", found=found))
        here.scope.declare(statement.name, POISON)
        return
    declaration = find_router(callee.name)
    if declaration is None:
        from modgraph.routers import Router

        suggestion = did_you_mean(callee.name, Router.registry, "routers are: {known}")
        here.tell(errors.UnknownOp(span=callee.span, name=callee.name, suggestion=suggestion))
        here.scope.declare(statement.name, POISON)
        return
    given = arguments_of(value, here) if isinstance(value, ast.Call) else []
    settled = settle(declaration, given, here, value.span)
    router = settled if isinstance(settled, Poison) else settled[0]
    _declare(statement.name, RouterEntity, router, statement.span, here)


def _declare(name: str, kind: Any, *facts: Any) -> None:
    *values, span, here = facts
    if _is_taken(name, span, here):
        return
    sound = not any(isinstance(value, Poison) for value in values)
    here.scope.declare(name, kind(join(here.scope.path, name), *values, span) if sound else POISON)


def _is_taken(name: str, span: Span, here: Here) -> bool:
    if name in here.scope.names:
        here.tell(errors.DuplicateName(span=span, name=name))
        return True
    return False


def _binding(statement: ast.Binding, here: Here) -> None:
    names = [reference.name for reference in statement.references]
    for reference in statement.references:
        if reference.index is not None:
            here.tell(NotThereYet(span=reference.span, what="a family of values"))
            here.scope.rebind(reference.name, POISON)
            return
    value = evaluate(statement.value, _named_after("_".join(names), here))
    values = list(value.tensors) if isinstance(value, Several) else [value]
    if isinstance(value, Poison):
        values = [POISON] * len(names)
    elif len(values) != len(names):
        here.tell(errors.NamesAndResults(span=statement.span, names=len(names), values=len(values)))
        values = [POISON] * len(names)
    for reference, each in zip(statement.references, values, strict=True):
        _bind(reference, each, statement, here)


def _bind(reference: ast.Reference, value: Any, statement: ast.Binding, here: Here) -> None:
    if isinstance(value, Template | Bound | ModuleEntity | PoolEntity):
        advice = f"apply it to a value, or declare it: module {reference.name} = …"
        found = described(value)
        here.tell(errors.NotValue(span=statement.value.span, what="what is bound", found=found, way_out=advice))
        value = POISON
    earlier = here.scope.find(reference.name)
    if isinstance(earlier, ModuleEntity | PoolEntity | RouterEntity) and here.scope.names.get(reference.name):
        here.tell(errors.DuplicateName(span=reference.span, name=reference.name))
        return
    here.scope.rebind(reference.name, value)


def _named_after(name: str, here: Here) -> Here:
    """Where the right side of a statement stands: its inline ops are named after what it binds."""
    local = join(here.scope.path, here.scope.next_binding(name))
    return here.under(Naming(local, local, here.scope.path))


def _output(statement: ast.Output, here: Here) -> None:
    name = statement.name
    if name is None:
        if not isinstance(statement.value, ast.Name):
            found = "this is an expression"
            advice = "give it a name: output NAME = …"
            here.tell(errors.WrongKind(span=statement.value.span, needed="a name", found=found, way_out=advice))
            return
        name = statement.value.name
    value = tensor(statement.value, _named_after(f"output.{name}", here), "an output")
    if isinstance(value, Tensor):
        here.add(OutputNode(name=f"output.{name}", span=statement.span), statement.span, {"x": value.result})


def _loss(statement: ast.Loss, here: Here) -> None:
    place = _named_after("loss" if statement.name is None else f"loss.{statement.name}", here)
    value = evaluate(statement.value, place)
    if isinstance(value, Poison) or value == 0.0:
        return
    if not isinstance(value, Tensor):
        here.tell(errors.NotValue(span=statement.value.span, what="a loss", found=described(value)))
        return
    if value.type.shape or value.type.dtype != "float":
        here.tell(errors.LossIsNotNumber(span=statement.value.span, found=str(value.type)))
        return
    here.add(LossNode(name=place.naming.node, span=statement.span), statement.span, {"x": value.result})


def _repeat(statement: ast.Repeat, here: Here) -> None:
    domain = constant(statement.domain, here, "what a repeat runs over")
    if isinstance(domain, Poison):
        _poison_declared(statement.body, here)
        return
    if not isinstance(domain, range | tuple):
        problem = f"a repeat runs over a range or a list, not {described(domain)}"
        here.tell(errors.Arithmetic(span=statement.domain.span, problem=problem, way_out="for example: 0..4"))
        _poison_declared(statement.body, here)
        return
    families: dict[str, dict[Any, Any]] = {name: {} for name in declared(statement.body)}
    for value in domain:
        here.context.count_iteration(statement.span)
        scope = here.scope.inside(f"{statement.name}.{value}")
        scope.declare(statement.variable, value)
        elaborate_body(statement.body, here.within(scope))
        for name, members in families.items():
            if name in scope.names:
                _gather(members, value, scope.names[name])
    _declare_families(families, here)


def _gather(members: dict[Any, Any], key: Any, entity: Any) -> None:
    """Put what an iteration declared under its key; a family within gives its members one by one."""
    if isinstance(entity, Family):
        for inner, member in entity.members.items():
            members[key if len(entity.members) == 1 else (key, inner)] = member
    else:
        members[key] = entity


def _if(statement: ast.If, here: Here) -> None:
    condition = constant(statement.condition, here, "a condition")
    bodies = [statement.then] + ([statement.otherwise] if statement.otherwise else [])
    if isinstance(condition, Poison) or not isinstance(condition, bool):
        if not isinstance(condition, Poison):
            problem = f"a condition is true or false, not {described(condition)}"
            advice = "compare it: x == 1"
            here.tell(errors.Arithmetic(span=statement.condition.span, problem=problem, way_out=advice))
        for body in bodies:
            _poison_declared(body, here)
        return
    taken = statement.then if condition else statement.otherwise
    families: dict[str, dict[Any, Any]] = {name: {} for body in bodies for name in declared(body)}
    scope = here.scope.inside()
    if taken is not None:
        elaborate_body(taken, here.within(scope))
    for name, members in families.items():
        if name in scope.names:
            _gather(members, 0, scope.names[name])
    _declare_families(families, here)


def _declare_families(families: dict[str, dict[Any, Any]], here: Here) -> None:
    for name, members in families.items():
        known = here.scope.names.get(name)
        if isinstance(known, Family):
            members = {**known.members, **{(len(known.members), key): each for key, each in members.items()}}
        elif known is not None:
            continue
        here.scope.declare(name, Family(name, members))


def _poison_declared(body: ast.Body, here: Here) -> None:
    for name in declared(body):
        here.scope.declare(name, POISON)


def declared(body: ast.Body) -> Iterator[str]:
    """Names of the modules, pools and routers that a body declares, those of bodies within included."""
    for statement in body.statements:
        match statement:
            case ast.Module() | ast.Pool() | ast.Router():
                yield statement.name
            case ast.Repeat():
                yield from declared(statement.body)
            case ast.If():
                yield from declared(statement.then)
                if statement.otherwise is not None:
                    yield from declared(statement.otherwise)


def _later(what: str) -> Callable[[Any, Here], None]:
    def tell(statement: ast.Statement, here: Here) -> None:
        here.tell(NotThereYet(span=statement.span, what=what))
        for name in _bound_by(statement):
            here.scope.declare(name, POISON)

    return tell


def _bound_by(statement: Any) -> list[str]:
    """Names that a statement of a later version would bind: poisoned, so that nothing follows."""
    if isinstance(statement, ast.Scan):
        return list(statement.names)
    body = getattr(statement, "body", None)
    names = [] if body is None else list(declared(body))
    for inner in body.statements if body is not None else ():
        if isinstance(inner, ast.Binding):
            names += [reference.name for reference in inner.references]
    return names


STATEMENTS: dict[type[ast.Statement], Callable[[Any, Here], None]] = {
    ast.Input: _input,
    ast.Target: _target,
    ast.Module: _module,
    ast.Pool: _pool,
    ast.Router: _router,
    ast.Binding: _binding,
    ast.Output: _output,
    ast.Loss: _loss,
    ast.Repeat: _repeat,
    ast.If: _if,
    ast.For: _later('"for"'),
    ast.Scan: _later('"scan"'),
    ast.Grow: _later('"grow"'),
    ast.Frozen: _later('"frozen"'),
    ast.Yield: _later('"yield"'),
}
