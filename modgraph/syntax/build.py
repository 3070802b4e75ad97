"""Builds the syntax tree while the parser runs, bottom up, so that no depth of nesting needs recursion.

Every method receives the children of its grammar rule: tokens and finished trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from modgraph.diagnostics import Diagnostic, Span
from modgraph.syntax import ast
from modgraph.syntax.errors import NotAName, NumberTooLarge, TooDeep, TooLong
from modgraph.syntax.limits import INTEGER, ITEMS, TREE_DEPTH

T = TypeVar("T", bound=ast.Tree)
Children = list[Any]


class Rejected(Exception):
    """A finished rule breaks a limit; carries the message."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.text())
        self.diagnostic = diagnostic


def span_of(children: Children) -> Span:
    first: Span = children[0].span
    return first.to(children[-1].span)


def make(kind: type[T], children: Children, /, **fields: Any) -> T:
    span = span_of(children)
    depth = 1 + ast.depth_of(children)
    if depth > TREE_DEPTH:
        raise Rejected(TooDeep(span=span, what="this is", limit=TREE_DEPTH))
    return kind(span=span, depth=depth, **fields)


def items(children: Children, kind: type[T]) -> tuple[T, ...]:
    """The members of one bracket, which are not too many."""
    found = trees(children, kind)
    if len(found) > ITEMS:
        advice = "write fewer, or a range: 0..n"
        raise Rejected(TooLong(span=found[ITEMS].span, what="members in one bracket", limit=ITEMS, way_out=advice))
    return found


def trees(children: Children, kind: type[T]) -> tuple[T, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def words(children: Children) -> list[str]:
    """The names among some tokens."""
    return [str(child) for child in children if getattr(child, "type", None) == "NAME"]


def node(kind: type[T], **places: int | type[ast.Tree]) -> Callable[[Any, Children], T]:
    """A rule whose tree has some children as its fields, by place; None where an optional one is left out. A kind of
    tree stands for all members of that kind."""

    def field(children: Children, at: int | type[ast.Tree]) -> Any:
        if not isinstance(at, int):
            return items(children, at)
        child = children[at] if at < len(children) else None
        return str(child) if isinstance(child, str) else child

    def build(builder: Any, children: Children) -> T:
        return make(kind, children, **{name: field(children, at) for name, at in places.items()})

    return build


def text_of(token: Any) -> str:
    return str(token)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


class _Parameters(ast.Tree):
    items: tuple[ast.Parameter, ...]


class Builder:
    """One method per grammar rule."""

    def start(self, children: Children) -> ast.File:
        return ast.File(
            span=span_of(children) if children else None,  # type: ignore[arg-type]
            imports=trees(children, ast.Import),
            definitions=trees(children, ast.Definition),
        )

    def import_(self, children: Children) -> ast.Import:
        path, span = text_of(children[-1]), children[-1].span
        return make(ast.Import, children, names=tuple(words(children)), path=path, path_span=span)

    def model(self, children: Children) -> ast.Definition:
        parameters = next((child for child in children if isinstance(child, _Parameters)), None)
        return make(
            ast.Definition,
            children,
            keyword=str(children[0]),
            name=str(children[1]),
            name_span=children[1].span,
            parameters=parameters.items if parameters else (),
            body=children[-1],
        )

    block = model

    def router_type(self, children: Children) -> ast.Definition:
        return replace(self.model(children), pools=tuple(words(children)[1:]))

    parameters = node(_Parameters, items=ast.Parameter)
    parameter = node(ast.Parameter, name=0, default=2)

    def body(self, children: Children) -> ast.Body:
        return make(ast.Body, children, statements=trees(children, ast.Statement))

    # ------------------------------------------------------------ statements

    input = node(ast.Input, reference=1, type=3)
    target = node(ast.Target, reference=1, type=3)
    module = node(ast.Module, keyword=0, name=1, value=3)

    def pool(self, children: Children) -> ast.Pool:
        size = children[3] if len(children) == 7 else None
        return make(ast.Pool, children, name=str(children[1]), size=size, value=children[-1])

    router = node(ast.Router, name=1, value=3)

    def binding(self, children: Children) -> ast.Binding:
        return make(ast.Binding, children, references=trees(children, ast.Reference), value=children[-1])

    def output(self, children: Children) -> ast.Output:
        return make(ast.Output, children, reference=_left_of_equals(children), value=children[-1])

    def loss(self, children: Children) -> ast.Loss:
        return make(ast.Loss, children, reference=_left_of_equals(children), value=children[-1])

    def repeat(self, children: Children) -> ast.Repeat:
        names = words(children)
        return make(ast.Repeat, children, name=names[0], variable=names[-1], domain=children[-2], body=children[-1])

    for_ = node(ast.For, variable=1, domain=3, body=4)

    def if_(self, children: Children) -> ast.If:
        otherwise = children[4] if len(children) == 5 else None
        if isinstance(otherwise, ast.If):
            otherwise = make(ast.Body, [otherwise], statements=(otherwise,))
        return make(ast.If, children, condition=children[1], then=children[2], otherwise=otherwise)

    def scan(self, children: Children) -> ast.Scan:
        body_at = next(at for at, child in enumerate(children) if isinstance(child, ast.Body))
        return make(
            ast.Scan,
            children,
            sequence=children[1],
            variable=str(children[3]),
            carries=trees(children, ast.Carry),
            body=children[body_at],
            names=tuple(words(children[body_at:])),
        )

    carry = node(ast.Carry, name=0, type=2, start=4)
    yield_ = node(ast.Yield, value=1)
    grow = node(ast.Grow, pool=1, router=3, condition=5, where=7)
    grow_by = node(ast.GrowBy, pool=1, by=3)
    frozen = node(ast.Frozen, body=1)
    moved = node(ast.Moved, before=1, after=3)
    weight = node(ast.WeightOf, name=1, type=3, start=5)
    constant = node(ast.ConstantOf, name=1, type=3, value=5)
    state = node(ast.StateOf, name=1, type=3, start=5)

    def next_(self, children: Children) -> ast.Next:
        _, name, _, value = children
        return make(ast.Next, children, name=str(name), name_span=name.span, value=value)

    record = node(ast.Record, items=ast.Recorded)

    def recorded(self, children: Children) -> ast.Recorded:
        name, *role = words(children)
        value = children[-1] if isinstance(children[-1], ast.Expression) else None
        return make(ast.Recorded, children, name=name, role=role[0] if role else None, value=value)

    require = node(ast.Require, condition=1)

    def path(self, children: Children) -> ast.Path:
        return make(ast.Path, children, name="".join(children))

    reference = node(ast.Reference, name=0, index=2)
    named_axis = node(ast.NamedAxis, name=0, size=2)

    type = node(ast.TypeOf, dtype=0, axes=ast.Expression)
    # ------------------------------------------------------------ expressions

    def pipeline(self, children: Children) -> ast.Pipeline:
        summed = children[1] if isinstance(children[1], ast.Sent) else None
        return make(ast.Pipeline, children, head=children[0], stages=trees(children, ast.Stage), sent=summed)

    stage = node(ast.Stage, term=0, sent=1)
    sent = node(ast.Sent, by=1, over=3)

    def sum(self, children: Children) -> ast.Expression:
        """A left-leaning chain of operators of one rank."""
        left: ast.Expression = children[0]
        for at in range(1, len(children), 2):
            part = [left, children[at], children[at + 1]]
            left = make(ast.Binary, part, operator=str(children[at]), left=left, right=children[at + 1])
        return left

    product = sum
    disjunction = sum
    conjunction = sum
    power = sum

    def compare(self, children: Children) -> ast.Binary:
        operator: str = children[1].name
        return make(ast.Binary, children, operator=operator, left=children[0], right=children[2])

    def comparator(self, children: Children) -> ast.Name:
        return make(ast.Name, children, name=" ".join(map(str, children)))

    range = node(ast.Range, start=0, stop=2)
    unary = node(ast.Unary, operator=0, operand=1)

    call = node(ast.Call, callee=0, arguments=ast.Argument)
    index = node(ast.Index, target=0, index=2)
    attribute = node(ast.Attribute, target=0, name=2)

    def argument(self, children: Children) -> ast.Argument:
        name = str(children[0]) if len(children) == 3 else None
        return make(ast.Argument, children, name=name, value=children[-1])

    name = node(ast.Name, name=0)

    def integer(self, children: Children) -> ast.Literal:
        digits = str(children[0]).lstrip("0")
        if len(digits) > 16 or int(digits or "0") > INTEGER:
            raise Rejected(NumberTooLarge(span=span_of(children), limit=INTEGER))
        return make(ast.Literal, children, value=int(digits or "0"))

    def decimal(self, children: Children) -> ast.Literal:
        value = float(children[0])
        if value > 1e38:
            raise Rejected(NumberTooLarge(span=span_of(children), limit=10**38))
        return make(ast.Literal, children, value=value)

    def string(self, children: Children) -> ast.Literal:
        return make(ast.Literal, children, value=text_of(children[0]))

    def boolean(self, children: Children) -> ast.Literal:
        return make(ast.Literal, children, value=str(children[0]) == "true")

    list = node(ast.ListOf, items=ast.Expression)
    tuple = node(ast.TupleOf, items=ast.Expression)

    def group(self, children: Children) -> ast.Expression:
        inner: ast.Expression = children[1]
        return inner


def _left_of_equals(children: Children) -> ast.Reference | None:
    """The name, or member of a family, that an output or a loss is given; None where none is."""
    if len(children) == 2:
        return None
    match children[1]:
        case ast.Name(name=name):
            return make(ast.Reference, children[1:2], name=name)
        case ast.Index(target=ast.Name(name=name), index=index):
            return make(ast.Reference, children[1:2], name=name, index=index)
        case _:
            raise Rejected(NotAName(span=children[1].span, keyword=str(children[0])))
