"""What names and expressions stand for while a spec is elaborated.

A constant is a plain Python value: int, float, bool, str, tuple or range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from modgraph.declare import Initial, Record, Role, record_as, shown_briefly
from modgraph.diagnostics import Note, Span
from modgraph.elaboration.scope import Scope
from modgraph.ir import Result
from modgraph.routers import Router
from modgraph.routers.defined import ROLES
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType

Constant = int | float | bool | str | tuple | range  # type: ignore[type-arg]


class Entity:
    """Anything but a constant."""


@dataclass(frozen=True)
class Poison(Entity):
    """Stands for what a reported mistake left undefined, so that nothing follows from it."""


POISON = Poison()


@dataclass(frozen=True)
class Tensor(Entity):
    """A value of the network: a result of a node, and its type."""

    result: Result
    type: TensorType
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TensorTuple(Entity):
    """Values that go together: a tuple of operands, or the results of one op."""

    tensors: tuple[Any, ...]


@dataclass(frozen=True)
class OpUse(Entity):
    """An op or router with its settings, not applied yet; `label` and `initial` are the user's `name=` and `init=`."""

    op: Any
    label: str | None = None
    initial: Initial | None = None


@dataclass(frozen=True)
class BlockEntity(Entity):
    """A definition that each use instantiates; `scope` is that of the file it stands in."""

    definition: ast.Definition
    scope: Scope = field(compare=False)


@dataclass(frozen=True)
class BlockUse(Entity):
    """A block with its arguments, not applied yet, and their spans."""

    block: BlockEntity
    parameters: dict[str, Any] = field(hash=False)
    label: str | None = None
    spans: dict[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Template(Entity):
    """A pipeline whose head is an op: applied where it is used, in the scope where it was written."""

    stages: tuple[ast.Stage, ...]
    scope: Scope = field(compare=False)


@dataclass(frozen=True)
class ModuleEntity(Entity):
    """A named instance: one set of weights, wherever it is used."""

    path: str
    template: Any
    frozen: bool
    span: Span = field(compare=False)


@dataclass(frozen=True)
class PoolEntity(Entity):
    """Modules of one kind (`templates` has one, applied `size` times) or unlike ones (as many templates).

    The last `grown` were added to those it was declared with. `shares` is the path of the pool whose axis its modules
    have too, if not one of their own.
    """

    path: str
    size: int
    templates: tuple[Any, ...]
    frozen: bool
    span: Span = field(compare=False)
    grown: int = 0
    shares: str = ""

    @property
    def axis(self) -> Axis:
        """The axis of its modules: its own, or that of the pool it shares."""
        return Axis(self.size, self.shares or self.path)


@dataclass(frozen=True)
class RouterUse(BlockUse):
    """A router that is defined in the language, with its arguments."""

    @property
    def name(self) -> str:
        return self.block.definition.name

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """What it records, as far as its text says so."""
        found = {each.name: role_of(each) or Role.OTHER for each in recorded_in(self.block.definition.body)}
        return tuple(Record(name, "...", role) for name, role in found.items())

    @property
    def record_names(self) -> tuple[str, ...]:
        return tuple(record.name for record in self.records)

    def record_as(self, *roles: Role) -> Record | None:
        """What it records in the first of these roles that it has a record for."""
        return record_as(self.records, *roles)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.given)})" if self.given else self.name

    @property
    def given(self) -> tuple[str, ...]:
        """Its arguments, as they would be written."""
        return tuple(f"{name}={shown_briefly(value)}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class RouterEntity(Entity):
    path: str
    router: Router | RouterUse
    frozen: bool
    span: Span = field(compare=False)


@dataclass(frozen=True)
class Family(Entity):
    """All that one declaration inside `repeat`, `for` or `if` declared, by the loop's variable; or `s[k] = …`."""

    name: str
    members: dict[Any, Any] = field(hash=False)

    @property
    def of_values(self) -> bool:
        return bool(self.members) and all(isinstance(each, Tensor) for each in self.members.values())


def recorded_in(body: ast.Body) -> Iterator[ast.Recorded]:
    """What a router's body records, in loops and branches too."""
    pending: list[Any] = [*body.statements]
    while pending:
        match pending.pop(0):
            case ast.Record(items=items):
                yield from items
            case ast.If(then=then, otherwise=otherwise):
                pending = [*then.statements, *(otherwise.statements if otherwise is not None else ()), *pending]
            case ast.Repeat(body=inner) | ast.For(body=inner) | ast.Frozen(body=inner):
                pending = [*inner.statements, *pending]


def role_of(item: ast.Recorded) -> Role | None:
    """What a record means: the role that is written, or that its name is the word for; none for another word."""
    if item.role is not None:
        return ROLES.get(item.role)
    return ROLES.get(item.name, Role.OTHER)


def described(value: Any) -> str:
    """A value in words, for messages."""
    match value:
        case Tensor():
            return f"a value of type {value.type}"
        case TensorTuple():
            return f"{len(value.tensors)} values"
        case OpUse() | Template() | BlockUse() | BlockEntity():
            return "an op that is not applied to anything"
        case ModuleEntity():
            return f'the module "{value.path}"'
        case PoolEntity():
            return f'the pool "{value.path}"'
        case RouterEntity():
            return f'the router "{value.path}"'
        case Family():
            return f'the family "{value.name}"'
        case _:
            return f"the constant {shown_briefly(value)}"


def is_callable(value: Any) -> bool:
    """What may stand right of an arrow."""
    return isinstance(value, ModuleEntity | PoolEntity | Template | OpUse | BlockEntity)


def is_value(value: Any) -> bool:
    return not is_callable(value)


def is_block(value: Any) -> bool:
    return isinstance(value, BlockEntity)


def origins(tensors: tuple[Tensor, ...], culprit: int | None) -> tuple[Note, ...]:
    """Where operands that do not fit came from: the culprit if one is known, or all."""
    chosen = tensors if culprit is None else tensors[culprit : culprit + 1]
    return tuple(Note(text=f"{tensor.type} comes from here", span=tensor.span) for tensor in chosen if tensor.span)
