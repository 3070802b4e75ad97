"""What names and expressions stand for; a constant is a plain Python int, float, bool, str, tuple or range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from modgraph.declare import ROLES, Initial, Record, Role, format_briefly
from modgraph.diagnostics import Note, Span
from modgraph.elaboration.scope import Scope, join
from modgraph.ir import Call, Result
from modgraph.routers import Router, RouterText
from modgraph.syntax import ast
from modgraph.types import Axis, TensorType
from modgraph.vocabulary import find_op, is_router


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
    """A block with its arguments, not applied yet; `spans` are of those given, `defaults` of a router."""

    block: BlockEntity
    parameters: dict[str, Any] = field(hash=False)
    label: str | None = None
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Template(Entity):
    """A pipeline whose head is no value: applied where it is used, in the scope and the use of a block of its text."""

    stages: tuple[ast.Stage, ...]
    scope: Scope = field(compare=False)
    call: Any = field(default=None, compare=False)

    @property
    def term(self) -> ast.Name | ast.Call | None:
        """The name or the call that it is, where it is no more: such a one may get further arguments."""
        match self.stages:
            case (ast.Stage(term=ast.Name() | ast.Call(callee=ast.Name()) as term, by=None),):
                return term
        return None

    @property
    def is_router(self) -> bool:
        """Whether it can only be a kind of router."""
        callee = self.term.callee if isinstance(self.term, ast.Call) else self.term
        return isinstance(callee, ast.Name) and is_router_name(callee.name, self.scope)

    @property
    def span(self) -> Span:
        return self.stages[0].span.to(self.stages[-1].span)

    def __str__(self) -> str:
        return " ".join(self.span.text.split())


@dataclass(frozen=True, kw_only=True)
class DeclaredEntity(Entity):
    """A module, a pool or a router, which is declared by a name.

    `inside` is the path of the pool's module whose body declares it, `within` the call that does. `word` is what nodes
    are called where it is used: the name that it is declared by, without the key of a member.
    """

    kind: ClassVar[str]
    path: str
    frozen: bool
    span: Span = field(compare=False)
    inside: str = ""
    within: Call | None = field(default=None, compare=False)
    word: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class ModuleEntity(DeclaredEntity):
    """One set of weights, wherever it is used; inside a pool's module, one for each."""

    kind = "module"
    template: Any


@dataclass(frozen=True, kw_only=True)
class PoolEntity(DeclaredEntity):
    """Modules of one kind (`templates` has one, applied `size` times) or unlike ones (as many templates).

    The last `grown` were added to those it was declared with. `shares` is the path of the pool whose axis its modules
    have too, if not one of their own. `alone` says that the text itself says that there is one: `pool p[1]`.
    """

    kind = "pool"
    size: int
    templates: tuple[Any, ...]
    grown: int = 0
    shares: str = ""
    is_single: bool = False

    @property
    def axis(self) -> Axis:
        """The axis of its modules: its own, or that of the pool it shares."""
        return Axis(self.size, join(self.inside, self.shares or self.path))

    @property
    def whole_path(self) -> str:
        """Its path, below that of the pool's module whose body declares it."""
        return join(self.inside, self.path)


@dataclass(frozen=True)
class AxisEntity(Entity):
    """An axis that a type gives a name: `class[kind=10]`. It stands wherever a pool may stand for an axis."""

    axis: Axis
    span: Span = field(compare=False)

    @property
    def path(self) -> str:
        return self.axis.name

    @property
    def size(self) -> int:
        """How long it is."""
        assert self.axis.size is not None, "a type gives it a length"
        return self.axis.size


WithAxis = PoolEntity | AxisEntity  # what stands for an axis


@dataclass(frozen=True)
class RouterUse(BlockUse):
    """A router that is defined in the language, with its arguments."""

    @property
    def name(self) -> str:
        return self.block.definition.name

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """What it records, as far as its text says so."""
        found = {each.name: find_role(each) or Role.OTHER for each in find_records(self.block.definition.body)}
        return tuple(Record(name, "...", role) for name, role in found.items())

    @property
    def text(self) -> RouterText:
        """How it is written: its arguments that differ from their defaults, and those that do not."""
        written: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
        for name in (parameter.name for parameter in self.block.definition.parameters):
            value = self.parameters[name]
            written[bool(value == self.defaults.get(name))].append((name, format_argument(value)))
        return RouterText(self.name, *map(tuple, written))

    def __str__(self) -> str:
        return str(self.text)


@dataclass(frozen=True, kw_only=True)
class RouterEntity(DeclaredEntity):
    kind = "router"
    router: Router | RouterUse


@dataclass(frozen=True)
class Family(Entity):
    """All that one declaration inside `repeat`, `for` or `if` declared, by the loop's variable; or `s[k] = …`."""

    name: str
    members: dict[Any, Any] = field(hash=False)

    @property
    def of_values(self) -> bool:
        return bool(self.members) and all(isinstance(each, Tensor) for each in self.members.values())


def flatten_values(value: Any) -> tuple[Any, ...]:
    """The values that stand together: those in parentheses, the members of a family, or one."""
    if isinstance(value, TensorTuple):
        return tuple(each for tensor in value.tensors for each in flatten_values(tensor))
    return tuple(value.members.values()) if isinstance(value, Family) and value.of_values else (value,)


def find_records(body: ast.Body) -> Iterator[ast.RecordItem]:
    """What a router's body records, in loops and branches too."""
    records = (each for each in body.every_statement() if isinstance(each, ast.Record))
    return (item for record in records for item in record.items)


def find_role(item: ast.RecordItem) -> Role | None:
    """What a record means: the role that is written, or that its name is the word for; none for another word."""
    return ROLES.get(item.name, Role.OTHER) if item.role is None else ROLES.get(item.role)


def is_router_name(name: str, scope: Scope) -> bool:
    """Whether a name stands for a kind of router and for nothing else."""
    is_other = scope.find(name) is not None or find_op(name) is not None
    return not is_other and (is_router(name) or scope.find_router(name) is not None)


def format_argument(value: Any) -> str:
    """An argument of a block or a router, as it would be written."""
    if isinstance(value, Template):
        return str(value)
    if isinstance(value, tuple) and any(isinstance(each, Entity) for each in value):
        return f"[{', '.join(map(format_argument, value))}]"
    return str(value.path) if isinstance(value, DeclaredEntity | AxisEntity) else format_briefly(value)


def describe(value: Any) -> str:
    """A value in words, for messages."""
    match value:
        case Tensor():
            return f"a value of type {value.type}"
        case TensorTuple():
            return f"{len(value.tensors)} values"
        case Template() if value.is_router:
            return "a kind of router"
        case OpUse() | Template() | BlockUse() | BlockEntity():
            return "an op that is not applied to anything"
        case AxisEntity():
            return f'the axis "{value.axis}"'
        case Family():
            return f'the family "{value.name}"'
        case DeclaredEntity():
            return f'the {value.kind} "{value.path}"'
        case tuple() if any(isinstance(each, Entity) for each in value):
            return f"the list {format_argument(value)}"
        case _:
            return f"the constant {format_briefly(value)}"


def is_callable(value: Any) -> bool:
    """What may stand right of an arrow."""
    return isinstance(value, ModuleEntity | PoolEntity | Template | OpUse | BlockEntity | BlockUse)


def is_value(value: Any) -> bool:
    """What may stand for a value: of a family the first member tells, since there may be thousands."""
    if isinstance(value, Family):
        return isinstance(next(iter(value.members.values()), None), Tensor)
    return not is_callable(value)


def note_origins(tensors: tuple[Tensor, ...], culprit: int | None) -> tuple[Note, ...]:
    """Where operands that do not fit came from: the culprit if one is known, or all."""
    culprits = tensors if culprit is None else tensors[culprit : culprit + 1]
    return tuple(Note(text=f"{tensor.type} comes from here", span=tensor.span) for tensor in culprits if tensor.span)
