"""The syntax tree: what was written, where, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields
from functools import cached_property
from typing import Any, dataclass_transform

from modgraph.diagnostics import Span
from modgraph.frozen import FrozenData


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class _Node(FrozenData):
    """Makes every class below it a frozen dataclass."""


class Tree(_Node):
    """Base of every node. Places are no part of equality."""

    span: Span = field(compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)


# ---------------------------------------------------------------- expressions


class Expression(Tree):
    """Anything that stands for a value."""


class Name(Expression):
    name: str


class Literal(Expression):
    value: int | float | str | bool


class ListOf(Expression):
    items: tuple[Expression, ...]


class TupleOf(Expression):
    """Several operands of one op: `(a, b) -> concat`."""

    items: tuple[Expression, ...]


class Range(Expression):
    start: Expression
    stop: Expression


class Unary(Expression):
    operator: str
    operand: Expression


class Binary(Expression):
    """One operator between two operands: arithmetic, comparison, `and`, `or`."""

    operator: str
    left: Expression
    right: Expression


class Argument(Tree):
    name: str | None
    value: Expression


class Call(Expression):
    callee: Expression
    arguments: tuple[Argument, ...]


class Index(Expression):
    target: Expression
    index: Expression


class Attribute(Expression):
    target: Expression
    name: str


class Sent(Tree):
    """`by` a router or weights, perhaps `over` the axis that is summed."""

    by: Expression
    over: Expression | None = None


class Stage(Tree):
    """What stands right of an arrow: one term, and how the value is sent to it or summed behind it."""

    term: Expression
    sent: Sent | None = None


class Pipeline(Expression):
    """A value, perhaps summed, and the stages that it goes through."""

    head: Expression
    stages: tuple[Stage, ...]
    sent: Sent | None = None


# ---------------------------------------------------------------- statements


class Statement(Tree):
    """Anything that stands in a body."""

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies that stand in it."""
        return tuple(part for part in vars(self).values() if isinstance(part, Body))


class NamedAxis(Expression):
    """An axis that a type gives a name, which stands for it from there on: `kind=10`."""

    name: str
    size: Expression


class TypeOf(Tree):
    dtype: str
    axes: tuple[Expression, ...]

    @property
    def named(self) -> tuple[NamedAxis, ...]:
        """The axes that it declares."""
        return tuple(axis for axis in self.axes if isinstance(axis, NamedAxis))


class Reference(Tree):
    """A name that is bound, perhaps one member of a family: `s[k]`."""

    name: str
    index: Expression | None = None


class Input(Statement):
    reference: Reference
    type: TypeOf


class Target(Statement):
    reference: Reference
    type: TypeOf


class Module(Statement):
    """A named instance; `tokenizer` is the same thing by another word."""

    keyword: str
    name: str
    value: Expression


class Pool(Statement):
    name: str
    size: Expression | None
    value: Expression


class Router(Statement):
    name: str
    value: Expression


class Binding(Statement):
    references: tuple[Reference, ...]
    value: Expression


class Output(Statement):
    reference: Reference | None
    value: Expression


class Loss(Statement):
    reference: Reference | None
    value: Expression


class Moved(Statement):
    """What an earlier version of the model called otherwise, by paths in the graph: `blocks.8.expert`."""

    before: Reference
    after: Reference


class Array(Statement):
    """A `weight`, which is learned, a `constant`, or a `state`, which a rule moves: its numbers, or how it starts."""

    keyword: str
    name: str
    type: TypeOf
    value: Expression


class Next(Statement):
    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Expression


class Recorded(Tree):
    """One thing that a router records: its name, what it means if its name does not say so, its value if that is of
    another name."""

    name: str
    role: str | None = None
    value: Expression | None = None


class Record(Statement):
    items: tuple[Recorded, ...]


class Require(Statement):
    condition: Expression


class Body(Tree):
    statements: tuple[Statement, ...]

    def every_statement(self) -> Iterator[Statement]:
        """Its statements in the order of the text, those of bodies within too."""
        for statement in self.statements:
            yield statement
            for body in statement.bodies:
                yield from body.every_statement()

    @cached_property
    def declared(self) -> tuple[str, ...]:
        """Names of the inputs, targets, modules, pools, routers and axes that it declares, in bodies within too."""
        found: list[str] = []
        for statement in self.every_statement():
            match statement:
                case Module(name=name) | Pool(name=name) | Router(name=name):
                    found.append(name)
                case Input(reference=bound) | Target(reference=bound) if bound.index is None:
                    found.append(bound.name)
            if isinstance(statement, Input | Target | Array):
                found += [axis.name for axis in statement.type.named]
        return tuple(found)

    @cached_property
    def families(self) -> tuple[str, ...]:
        """Families that it gives a member, in bodies within too."""
        bound: list[Reference] = []
        for statement in self.every_statement():
            match statement:
                case Binding(references=references):
                    bound += references
                case Input(reference=reference) | Target(reference=reference):
                    bound.append(reference)
        return tuple(each.name for each in bound if each.index is not None)

    @cached_property
    def bound(self) -> frozenset[str]:
        """Names that it gives values, whatever branch is taken in it; those of loops are the rounds' own."""
        found: set[str] = set()
        for statement in self.statements:
            match statement:
                case Binding(references=references):
                    found |= {each.name for each in references if each.index is None}
                case Frozen(body=body):
                    found |= body.bound
                case If():
                    found |= statement.bound
        return frozenset(found)

    @cached_property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """All pipelines in it."""
        return tuple(tree for tree in walk(self) if isinstance(tree, Pipeline))


class Loop(Statement):
    """A `repeat`, whose rounds are called by a name, or a `for`, which has none."""

    name: str
    variable: str
    domain: Expression
    body: Body


class If(Statement):
    condition: Expression
    then: Body
    otherwise: Body | None

    @property
    def bound(self) -> frozenset[str]:
        """The values that both branches name."""
        return frozenset() if self.otherwise is None else self.then.bound & self.otherwise.bound


class Carry(Tree):
    name: str
    type: TypeOf
    start: Expression | None


class Scan(Statement):
    sequence: Expression
    variable: str
    carries: tuple[Carry, ...]
    body: Body
    names: tuple[str, ...]


class GrowBy(Statement):
    """`grow pool[2]`: the pool has so many modules more than it was declared with."""

    pool: str
    by: Expression


class Grow(Statement):
    pool: str
    router: str
    condition: Expression
    where: Expression | None


class Frozen(Statement):
    body: Body


class Yield(Statement):
    value: Expression


# ---------------------------------------------------------------- definitions


class Parameter(Tree):
    name: str
    default: Expression | None


class Import(Tree):
    names: tuple[str, ...]
    path: str
    path_span: Span = field(compare=False, repr=False)


class Definition(Tree):
    """A model (built whole), a block (used inside models), or a router, for pools that its body has names for."""

    keyword: str
    name: str
    name_span: Span = field(compare=False, repr=False)
    parameters: tuple[Parameter, ...]
    body: Body
    pools: tuple[str, ...] = ()

    @cached_property
    def axis_words(self) -> frozenset[str]:
        """The words that may name axes in its body: strings, and what stands behind `over` and `axis=`."""
        found: set[str] = set()
        for tree in walk(self.body):
            match tree:
                case (
                    Literal(value=str(word)) | Sent(over=Name(name=word)) | Argument(name="axis", value=Name(name=word))
                ):
                    found.add(word)
        return frozenset(found)


class File(Tree):
    imports: tuple[Import, ...]
    definitions: tuple[Definition, ...]

    @property
    def models(self) -> tuple[Definition, ...]:
        return tuple(each for each in self.definitions if each.keyword == "model")

    @property
    def blocks(self) -> tuple[Definition, ...]:
        return tuple(each for each in self.definitions if each.keyword == "block")

    @property
    def routers(self) -> tuple[Definition, ...]:
        return tuple(each for each in self.definitions if each.keyword == "router")


def walk(tree: Tree) -> Iterator[Tree]:
    """A tree and all that stand in it, in the order of the text."""
    pending: list[Any] = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, Tree):
            yield part
            pending += [getattr(part, field.name) for field in reversed(fields(part))]
        elif isinstance(part, tuple):
            pending += reversed(part)
