"""Builds the syntax tree while the parser runs, bottom up, so that no depth of nesting needs recursion.

Every method receives the children of its grammar rule: tokens and finished trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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


def text_of(token: Any) -> str:
    return str(token)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


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

    def parameters(self, children: Children) -> _Parameters:
        return make(_Parameters, children, items=items(children, ast.Parameter))

    def parameter(self, children: Children) -> ast.Parameter:
        return make(ast.Parameter, children, name=str(children[0]), default=children[2] if len(children) > 1 else None)

    def body(self, children: Children) -> ast.Body:
        return make(ast.Body, children, statements=trees(children, ast.Statement))

    # ------------------------------------------------------------ statements

    def input(self, children: Children) -> ast.Input:
        return make(ast.Input, children, reference=children[1], type=children[3])

    def target(self, children: Children) -> ast.Target:
        return make(ast.Target, children, reference=children[1], type=children[3])

    def module(self, children: Children) -> ast.Module:
        return make(ast.Module, children, keyword=str(children[0]), name=str(children[1]), value=children[3])

    def pool(self, children: Children) -> ast.Pool:
        size = children[3] if len(children) == 7 else None
        return make(ast.Pool, children, name=str(children[1]), size=size, value=children[-1])

    def router(self, children: Children) -> ast.Router:
        return make(ast.Router, children, name=str(children[1]), value=children[-1])

    def binding(self, children: Children) -> ast.Binding:
        return make(ast.Binding, children, references=trees(children, ast.Reference), value=children[-1])

    def output(self, children: Children) -> ast.Output:
        return make(ast.Output, children, reference=_left_of_equals(children), value=children[-1])

    def loss(self, children: Children) -> ast.Loss:
        return make(ast.Loss, children, reference=_left_of_equals(children), value=children[-1])

    def repeat(self, children: Children) -> ast.Repeat:
        names = words(children)
        return make(ast.Repeat, children, name=names[0], variable=names[-1], domain=children[-2], body=children[-1])

    def for_(self, children: Children) -> ast.For:
        return make(ast.For, children, variable=str(children[1]), domain=children[3], body=children[4])

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

    def carry(self, children: Children) -> ast.Carry:
        start = children[4] if len(children) == 5 else None
        return make(ast.Carry, children, name=str(children[0]), type=children[2], start=start)

    def yield_(self, children: Children) -> ast.Yield:
        return make(ast.Yield, children, value=children[1])

    def grow(self, children: Children) -> ast.Grow:
        where = children[7] if len(children) == 8 else None
        pool, router = words(children)
        return make(ast.Grow, children, pool=pool, router=router, condition=children[5], where=where)

    def grow_by(self, children: Children) -> ast.GrowBy:
        return make(ast.GrowBy, children, pool=str(children[1]), by=children[3])

    def frozen(self, children: Children) -> ast.Frozen:
        return make(ast.Frozen, children, body=children[1])

    def moved(self, children: Children) -> ast.Moved:
        return make(ast.Moved, children, before=children[1], after=children[3])

    def weight(self, children: Children) -> ast.WeightOf:
        return make(ast.WeightOf, children, name=str(children[1]), type=children[3], start=children[5])

    def constant(self, children: Children) -> ast.ConstantOf:
        return make(ast.ConstantOf, children, name=str(children[1]), type=children[3], value=children[5])

    def state(self, children: Children) -> ast.StateOf:
        return make(ast.StateOf, children, name=str(children[1]), type=children[3], start=children[5])

    def next_(self, children: Children) -> ast.Next:
        _, name, _, value = children
        return make(ast.Next, children, name=str(name), name_span=name.span, value=value)

    def record(self, children: Children) -> ast.Record:
        return make(ast.Record, children, items=items(children, ast.Recorded))

    def recorded(self, children: Children) -> ast.Recorded:
        name, *role = words(children)
        value = children[-1] if isinstance(children[-1], ast.Expression) else None
        return make(ast.Recorded, children, name=name, role=role[0] if role else None, value=value)

    def require(self, children: Children) -> ast.Require:
        return make(ast.Require, children, condition=children[1])

    def path(self, children: Children) -> ast.Path:
        return make(ast.Path, children, name="".join(children))

    def reference(self, children: Children) -> ast.Reference:
        index = children[2] if len(children) == 4 else None
        return make(ast.Reference, children, name=str(children[0]), index=index)

    def named_axis(self, children: Children) -> ast.NamedAxis:
        return make(ast.NamedAxis, children, name=str(children[0]), size=children[2])

    def type(self, children: Children) -> ast.TypeOf:
        return make(ast.TypeOf, children, dtype=str(children[0]), axes=items(children, ast.Expression))

    # ------------------------------------------------------------ expressions

    def pipeline(self, children: Children) -> ast.Pipeline:
        summed = children[1] if isinstance(children[1], ast.Sent) else None
        return make(ast.Pipeline, children, head=children[0], stages=trees(children, ast.Stage), sent=summed)

    def stage(self, children: Children) -> ast.Stage:
        return make(ast.Stage, children, term=children[0], sent=children[1] if len(children) > 1 else None)

    def sent(self, children: Children) -> ast.Sent:
        return make(ast.Sent, children, by=children[1], over=children[3] if len(children) > 2 else None)

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

    def range(self, children: Children) -> ast.Range:
        return make(ast.Range, children, start=children[0], stop=children[2])

    def unary(self, children: Children) -> ast.Unary:
        return make(ast.Unary, children, operator=str(children[0]), operand=children[1])

    def call(self, children: Children) -> ast.Call:
        return make(ast.Call, children, callee=children[0], arguments=items(children, ast.Argument))

    def index(self, children: Children) -> ast.Index:
        return make(ast.Index, children, target=children[0], index=children[2])

    def attribute(self, children: Children) -> ast.Attribute:
        return make(ast.Attribute, children, target=children[0], name=str(children[2]))

    def argument(self, children: Children) -> ast.Argument:
        name = str(children[0]) if len(children) == 3 else None
        return make(ast.Argument, children, name=name, value=children[-1])

    def name(self, children: Children) -> ast.Name:
        return make(ast.Name, children, name=str(children[0]))

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

    def list(self, children: Children) -> ast.ListOf:
        return make(ast.ListOf, children, items=items(children, ast.Expression))

    def tuple(self, children: Children) -> ast.TupleOf:
        return make(ast.TupleOf, children, items=items(children, ast.Expression))

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


@dataclass(frozen=True, kw_only=True)
class _Parameters(ast.Tree):
    items: tuple[ast.Parameter, ...]
