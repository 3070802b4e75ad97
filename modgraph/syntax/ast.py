"""Defines the nodes of the syntax tree."""

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
    """Base of every node. Equality ignores spans."""

    span: Span = field(compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)


# ---------------------------------------------------------------- expressions


class Expression(Tree):
    """Base of expressions, which evaluate to a value."""


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
    """A binary operator with its operands: arithmetic, comparison, `and`, `or`."""

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


class ByClause(Tree):
    """`by` a router or weights, with the axis to sum `over` if the text names one."""

    value: Expression
    over: Expression | None = None


class Stage(Tree):
    """The right side of an arrow: a term and its `by` clause, which routes the value or sums the result."""

    term: Expression
    by: ByClause | None = None


class Pipeline(Expression):
    """A value, with a `by` clause if it is summed first, and the stages that it passes through."""

    head: Expression
    stages: tuple[Stage, ...]
    by: ByClause | None = None


# ---------------------------------------------------------------- statements


class Statement(Tree):
    """Base of statements, the members of a body."""

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies directly inside this statement."""
        return tuple(part for part in vars(self).values() if isinstance(part, Body))


class NamedAxis(Expression):
    """An axis that a type declares with a name and a size: `kind=10`."""

    name: str
    size: Expression


class TypeOf(Tree):
    dtype: str
    axes: tuple[Expression, ...]

    @property
    def named(self) -> tuple[NamedAxis, ...]:
        """The axes that this type declares with a name."""
        return tuple(axis for axis in self.axes if isinstance(axis, NamedAxis))


class Reference(Tree):
    """A name to bind, or a member of a family: `s[k]`."""

    name: str
    index: Expression | None = None


class Input(Statement):
    """An input; one of a block may have a `default` for uses that leave it out."""

    reference: Reference
    type: TypeOf
    default: Expression | None = None


class Target(Statement):
    reference: Reference
    type: TypeOf


class Module(Statement):
    """A named instance; `tokenizer` is a synonym of `module`."""

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


class Move(Statement):
    """A rename since an earlier version of the model, as paths in the graph: `blocks.8.expert`."""

    before: Reference
    after: Reference


class Array(Statement):
    """A learned `weight`, a `constant`, or a `state` with an update rule; `value` is its content."""

    keyword: str
    name: str
    type: TypeOf
    value: Expression


class Next(Statement):
    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Expression


class RecordItem(Tree):
    """One record of a router: its name, its role if the name does not imply one, its value if the name differs."""

    name: str
    role: str | None = None
    value: Expression | None = None


class Record(Statement):
    items: tuple[RecordItem, ...]


class Require(Statement):
    condition: Expression


class Body(Tree):
    statements: tuple[Statement, ...]

    def every_statement(self) -> Iterator[Statement]:
        """Iterate over all statements in the order of the text, nested bodies included."""
        for statement in self.statements:
            yield statement
            for body in statement.bodies:
                yield from body.every_statement()

    @cached_property
    def declared(self) -> tuple[str, ...]:
        """Names of the inputs, targets, modules, pools, routers and axes declared here, nested bodies included."""
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
        """Names of the families that get a member here, nested bodies included."""
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
        """Names that the body binds in every branch; names bound in a loop belong to its rounds."""
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
        """All pipelines in the body."""
        return tuple(tree for tree in walk(self) if isinstance(tree, Pipeline))


class Loop(Statement):
    """A `repeat`, which names its rounds, or a `for`, whose name is empty."""

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
        """The names that both branches bind."""
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
    until: Expression | None
    names: tuple[str, ...]


class GrowBy(Statement):
    """`grow pool[2]`: add modules to a pool."""

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
    """A model, a block, or a router with names for the pools that it routes to."""

    keyword: str
    name: str
    name_span: Span = field(compare=False, repr=False)
    parameters: tuple[Parameter, ...]
    body: Body
    pools: tuple[str, ...] = ()

    @cached_property
    def axis_words(self) -> frozenset[str]:
        """The words that may name axes in the body: strings, and the arguments of `over`, `axis=` and `rename`."""
        found: set[str] = set()
        for tree in walk(self.body):
            match tree:
                case (
                    Literal(value=str(word))
                    | ByClause(over=Name(name=word))
                    | Argument(name="axis", value=Name(name=word))
                ):
                    found.add(word)
                case Call(callee=Name(name="rename"), arguments=arguments):
                    found |= {each.name for each in arguments if each.name}
        return frozenset(found)

    @cached_property
    def named_axes(self) -> frozenset[str]:
        """The words that name axes of inputs in the body."""
        inputs = (each for each in self.body.every_statement() if isinstance(each, Input))
        return self.axis_words & {axis.name for each in inputs for axis in each.type.axes if isinstance(axis, Name)}


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
    """Iterate over a tree and its descendants in the order of the text."""
    pending: list[Any] = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, Tree):
            yield part
            pending += [getattr(part, field.name) for field in reversed(fields(part))]
        elif isinstance(part, tuple):
            pending += reversed(part)
