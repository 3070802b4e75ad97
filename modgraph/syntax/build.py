"""Builds the syntax tree bottom up while the parser runs, without recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from modgraph.diagnostics import Diagnostic, Span
from modgraph.syntax import ast
from modgraph.syntax.errors import NotAName, NumberTooLarge, TooDeep, TooLong
from modgraph.syntax.limits import INTEGER, ITEMS, TREE_DEPTH

T = TypeVar("T", bound=ast.Tree)
Children = list[Any]


class Rejected(Exception):
    """Raised when a reduced rule breaks a limit; carries the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.text())
        self.diagnostic = diagnostic


def join_spans(children: Children) -> Span:
    first: Span = children[0].span
    return first.to(children[-1].span)


def make(kind: type[T], children: Children, /, **fields: Any) -> T:
    span = join_spans(children)
    depth = 1 + max([child.depth for child in children if isinstance(child, ast.Tree)], default=0)
    if depth > TREE_DEPTH:
        raise Rejected(TooDeep(span=span, what="this is", limit=TREE_DEPTH))
    return kind(span=span, depth=depth, **fields)


def select_trees(children: Children, kind: type[T]) -> tuple[T, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def words(children: Children) -> tuple[str, ...]:
    """Select the names among some tokens."""
    return tuple(str(child) for child in children if getattr(child, "type", None) == "NAME")


def unquote(token: Any) -> str:
    return str(token)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def node(kind: type[T], **places: int | type[ast.Tree] | Callable[[Children], Any]) -> Callable[[Any, Children], T]:
    """Return a grammar rule that builds a tree from the children of the rule.

    Each field comes from a child at a place (None for an absent optional child), from all children of a kind of tree,
    or from a function of all children.
    """

    def field(children: Children, at: Any) -> Any:
        if isinstance(at, type):
            found: tuple[Any, ...] = select_trees(children, at)
            if len(found) > ITEMS:
                advice = "write fewer, or a range: 0..n"
                what = "members in one bracket"
                raise Rejected(TooLong(span=found[ITEMS].span, what=what, limit=ITEMS, way_out=advice))
            return found
        if not isinstance(at, int):
            return at(children)
        child = children[at] if at < len(children) else None
        return str(child) if isinstance(child, str) else child

    def build(builder: Any, children: Children) -> T:
        return make(kind, children, **{name: field(children, at) for name, at in places.items()})

    return build


def _make_reference(children: Children) -> ast.Reference | None:
    """Turn the left side of an output or a loss into a reference; None without a left side."""
    if len(children) == 2:
        return None
    match children[1]:
        case ast.Name(name=name):
            return make(ast.Reference, children[1:2], name=name)
        case ast.Index(target=ast.Name(name=name), index=index):
            return make(ast.Reference, children[1:2], name=name, index=index)
        case _:
            raise Rejected(NotAName(span=children[1].span, keyword=str(children[0])))


class _Parameters(ast.Tree):
    items: tuple[ast.Parameter, ...]


class Builder:
    """Has one method for each grammar rule."""

    def start(self, children: Children) -> ast.File:
        return ast.File(
            span=join_spans(children) if children else None,  # type: ignore[arg-type]
            imports=select_trees(children, ast.Import),
            definitions=select_trees(children, ast.Definition),
        )

    import_ = node(ast.Import, names=words, path=lambda them: unquote(them[-1]), path_span=lambda them: them[-1].span)
    model = node(
        ast.Definition,
        keyword=0,
        name=1,
        name_span=lambda them: them[1].span,
        parameters=lambda them: next((each.items for each in select_trees(them, _Parameters)), ()),
        body=-1,
        pools=lambda them: words(them)[1:],
    )
    block = router_type = model
    parameters = node(_Parameters, items=ast.Parameter)
    parameter = node(ast.Parameter, name=0, default=2)
    body = node(ast.Body, statements=lambda them: select_trees(them, ast.Statement))

    # ------------------------------------------------------------ statements

    input = node(ast.Input, reference=1, type=3, default=5)
    target = node(ast.Target, reference=1, type=3)
    module = node(ast.Module, keyword=0, name=1, value=3)
    pool = node(ast.Pool, name=1, size=lambda them: them[3] if len(them) == 7 else None, value=-1)
    router = node(ast.Router, name=1, value=3)
    binding = node(ast.Binding, references=lambda them: select_trees(them, ast.Reference), value=-1)
    output = node(ast.Output, reference=_make_reference, value=-1)
    loss = node(ast.Loss, reference=_make_reference, value=-1)
    repeat = node(ast.Loop, name=1, variable=lambda them: words(them)[-1], domain=-2, body=-1)
    for_ = node(ast.Loop, name=lambda them: "", variable=1, domain=3, body=4)

    def if_(self, children: Children) -> ast.If:
        otherwise = children[4] if len(children) == 5 else None
        if isinstance(otherwise, ast.If):
            otherwise = make(ast.Body, [otherwise], statements=(otherwise,))
        return make(ast.If, children, condition=children[1], then=children[2], otherwise=otherwise)

    scan = node(
        ast.Scan,
        sequence=1,
        variable=3,
        carries=lambda them: select_trees(them, ast.Carry),
        body=lambda them: select_trees(them, ast.Body)[0],
        until=lambda them: next(iter(select_trees(them, ast.Expression)[1:]), None),
        names=lambda them: words(them)[1:],
    )
    carry = node(ast.Carry, name=0, type=2, start=4)
    yield_ = node(ast.Yield, value=1)
    grow = node(ast.Grow, pool=1, router=3, condition=5, where=7)
    grow_by = node(ast.GrowBy, pool=1, by=3)
    frozen = node(ast.Frozen, body=1)
    moved = node(ast.Move, before=1, after=3)
    weight = constant = state = node(ast.Array, keyword=0, name=1, type=3, value=5)
    next_ = node(ast.Next, name=1, name_span=lambda them: them[1].span, value=3)
    record = node(ast.Record, items=ast.RecordItem)
    record_item = node(
        ast.RecordItem,
        name=0,
        role=lambda them: next(iter(words(them)[1:]), None),
        value=lambda them: them[-1] if isinstance(them[-1], ast.Expression) else None,
    )
    require = node(ast.Require, condition=1)
    path = node(ast.Reference, name="".join)
    reference = node(ast.Reference, name=0, index=2)
    named_axis = node(ast.NamedAxis, name=0, size=2)
    type = node(ast.TypeOf, dtype=0, axes=ast.Expression)

    # ------------------------------------------------------------ expressions

    pipeline = node(
        ast.Pipeline,
        head=0,
        stages=lambda them: select_trees(them, ast.Stage),
        by=lambda them: them[1] if isinstance(them[1], ast.ByClause) else None,
    )
    stage = node(ast.Stage, term=0, by=1)
    by_clause = node(ast.ByClause, value=1, over=3)

    def sum(self, children: Children) -> ast.Expression:
        """Fold a chain of operators of one precedence to the left."""
        left: ast.Expression = children[0]
        for at in range(1, len(children), 2):
            part = [left, children[at], children[at + 1]]
            left = make(ast.Binary, part, operator=str(children[at]), left=left, right=children[at + 1])
        return left

    product = disjunction = conjunction = power = sum
    compare = node(ast.Binary, operator=lambda them: them[1].name, left=0, right=2)
    comparator = node(ast.Name, name=" ".join)
    range = node(ast.Range, start=0, stop=2)
    unary = node(ast.Unary, operator=0, operand=1)
    call = node(ast.Call, callee=0, arguments=ast.Argument)
    index = node(ast.Index, target=0, index=2)
    attribute = node(ast.Attribute, target=0, name=2)
    argument = node(ast.Argument, name=lambda them: str(them[0]) if len(them) == 3 else None, value=-1)
    name = node(ast.Name, name=0)

    def integer(self, children: Children) -> ast.Literal:
        digits = str(children[0]).lstrip("0")
        if len(digits) > 16 or int(digits or "0") > INTEGER:
            raise Rejected(NumberTooLarge(span=join_spans(children), limit=INTEGER))
        return make(ast.Literal, children, value=int(digits or "0"))

    def decimal(self, children: Children) -> ast.Literal:
        value = float(children[0])
        if value > 1e38:
            raise Rejected(NumberTooLarge(span=join_spans(children), limit=10**38))
        return make(ast.Literal, children, value=value)

    string = node(ast.Literal, value=lambda them: unquote(them[0]))
    boolean = node(ast.Literal, value=lambda them: them[0] == "true")
    list = node(ast.ListOf, items=ast.Expression)
    tuple = node(ast.TupleOf, items=ast.Expression)

    def group(self, children: Children) -> ast.Expression:
        inner: ast.Expression = children[1]
        return inner
