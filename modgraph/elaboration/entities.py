"""The entities that names and expressions evaluate to; a constant is a plain int, float, bool, str, tuple or range."""

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
    """Base of everything except constants."""


@dataclass(frozen=True)
class Poison(Entity):
    """Takes the place of a value after a reported mistake and suppresses errors that follow from it."""


POISON = Poison()


@dataclass(frozen=True)
class Tensor(Entity):
    """A value of the network: a result of a node, with its type."""

    result: Result
    type: TensorType
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TensorTuple(Entity):
    """Several values: a tuple of operands, or the results of one op."""

    tensors: tuple[Any, ...]


@dataclass(frozen=True)
class OpUse(Entity):
    """An op or router with its settings, not yet applied; `label` and `initial` come from `name=` and `init=`."""

    op: Any
    label: str | None = None
    initial: Initial | None = None


@dataclass(frozen=True)
class BlockEntity(Entity):
    """A definition that each use instantiates; `scope` is that of its file."""

    definition: ast.Definition
    scope: Scope = field(compare=False)


@dataclass(frozen=True)
class BlockUse(Entity):
    """A block with its arguments, not yet applied; `spans` are those of the arguments, `defaults` those of a router."""

    block: BlockEntity
    parameters: dict[str, Any] = field(hash=False)
    label: str | None = None
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Template(Entity):
    """A pipeline without a value at its head, applied later in the scope and the call of its text.

    `constants` are those that its names meant where it was written, though the names are bound anew since.
    """

    stages: tuple[ast.Stage, ...]
    scope: Scope = field(compare=False)
    call: Any = field(default=None, compare=False)
    constants: tuple[tuple[str, Any], ...] = field(default=(), hash=False)

    @property
    def term(self) -> ast.Name | ast.Call | None:
        """The name or call that the template consists of, which may take further arguments; None for any other."""
        match self.stages:
            case (ast.Stage(term=ast.Name() | ast.Call(callee=ast.Name()) as term, by=None),):
                return term
        return None

    @property
    def is_router(self) -> bool:
        """Whether the template can only be a kind of router."""
        callee = self.term.callee if isinstance(self.term, ast.Call) else self.term
        return isinstance(callee, ast.Name) and is_router_name(callee.name, self.scope)

    @property
    def span(self) -> Span:
        return self.stages[0].span.to(self.stages[-1].span)

    def __str__(self) -> str:
        return " ".join(self.span.text.split())


@dataclass(frozen=True, kw_only=True)
class DeclaredEntity(Entity):
    """A module, a pool or a router.

    `inside` is the path of the pool's module whose body declares it, `within` the call that does. `word` names the
    nodes of its uses: the declared name without the key of a member.
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
    """One set of weights, shared by all uses; inside a pool's module, one for each module."""

    kind = "module"
    template: Any


@dataclass(frozen=True, kw_only=True)
class PoolEntity(DeclaredEntity):
    """Modules of one kind (one template, applied `size` times) or of several kinds (one template for each).

    The last `grown` modules were added to the declared ones. `shares` is the path of the pool whose axis the modules
    share. `has_literal_size` is true if the text writes the size as a number: `pool p[1]`.
    """

    kind = "pool"
    size: int
    templates: tuple[Any, ...]
    grown: int = 0
    shares: str = ""
    has_literal_size: bool = False

    @property
    def axis(self) -> Axis:
        """The axis of the modules: that of the pool itself or of the pool whose axis it shares."""
        return Axis(self.size, join(self.inside, self.shares or self.path))

    @property
    def whole_path(self) -> str:
        """The path of the pool, below that of the enclosing module of a pool."""
        return join(self.inside, self.path)


@dataclass(frozen=True)
class PoolMember(Entity):
    """One module of a pool, by its index: `expert[0]`."""

    pool: PoolEntity
    index: int

    @property
    def path(self) -> str:
        return f"{self.pool.path}[{self.index}]"


@dataclass(frozen=True)
class AxisEntity(Entity):
    """An axis that a type names: `class[kind=10]`. It can take the place of a pool wherever an axis is needed."""

    axis: Axis
    span: Span = field(compare=False)

    @property
    def path(self) -> str:
        return self.axis.name

    @property
    def size(self) -> int:
        """The size of the axis."""
        assert self.axis.size is not None, "a type gives it a length"
        return self.axis.size


WithAxis = PoolEntity | AxisEntity  # the entities that stand for an axis


@dataclass(frozen=True)
class RouterUse(BlockUse):
    """A router that is defined in the language, with its arguments."""

    @property
    def name(self) -> str:
        return self.block.definition.name

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The records that the text of the router declares."""
        found = {each.name: find_role(each) or Role.OTHER for each in find_records(self.block.definition.body)}
        return tuple(Record(name, "...", role) for name, role in found.items())

    @property
    def text(self) -> RouterText:
        """The router as text: the arguments that differ from their defaults, and those that do not."""
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
    """The entities that one declaration in a `repeat`, `for` or `if` produced, by key; or members of `s[k] = …`."""

    name: str
    members: dict[Any, Any] = field(hash=False)

    @property
    def of_values(self) -> bool:
        return bool(self.members) and all(isinstance(each, Tensor) for each in self.members.values())


def flatten_values(value: Any) -> tuple[Any, ...]:
    """Flatten a value: the values of a tuple, the members of a family, or the value itself."""
    if isinstance(value, TensorTuple):
        return tuple(each for tensor in value.tensors for each in flatten_values(tensor))
    return tuple(value.members.values()) if isinstance(value, Family) and value.of_values else (value,)


def find_records(body: ast.Body) -> Iterator[ast.RecordItem]:
    """Iterate over the records in a router's body, nested bodies included."""
    records = (each for each in body.every_statement() if isinstance(each, ast.Record))
    return (item for record in records for item in record.items)


def find_role(item: ast.RecordItem) -> Role | None:
    """Find the role of a record: the written one, or the one that its name implies; None for an unknown word."""
    return ROLES.get(item.name, Role.OTHER) if item.role is None else ROLES.get(item.role)


def is_router_name(name: str, scope: Scope) -> bool:
    """Whether a name refers to a kind of router and to nothing else."""
    is_other = scope.find(name) is not None or find_op(name) is not None
    return not is_other and (is_router(name) or scope.find_router(name) is not None)


def format_argument(value: Any) -> str:
    """Format an argument of a block or a router as it would be written."""
    if isinstance(value, Template):
        return str(value)
    if isinstance(value, tuple) and any(isinstance(each, Entity) for each in value):
        return f"[{', '.join(map(format_argument, value))}]"
    return str(value.path) if isinstance(value, DeclaredEntity | PoolMember | AxisEntity) else format_briefly(value)


def describe(value: Any) -> str:
    """Describe a value for a message."""
    match value:
        case Tensor():
            return f"a value of type {value.type}"
        case TensorTuple():
            return f"{len(value.tensors)} values"
        case Template() if value.is_router:
            return "a kind of router"
        case OpUse() | Template() | BlockUse() | BlockEntity():
            return "an op without operands"
        case PoolMember():
            return f'the module "{value.path}"'
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
    """Whether a value may stand right of an arrow."""
    return isinstance(value, ModuleEntity | PoolEntity | PoolMember | Template | OpUse | BlockEntity | BlockUse)


def is_value(value: Any) -> bool:
    """Whether an entity may be a value; a family may have thousands of members, so the first one decides."""
    if isinstance(value, Family):
        return isinstance(next(iter(value.members.values()), None), Tensor)
    return not is_callable(value)


def note_origins(tensors: tuple[Tensor, ...], culprit: int | None) -> tuple[Note, ...]:
    """Note the origins of operands that do not fit: of the culprit if it is known, or of all."""
    culprits = tensors if culprit is None else tensors[culprit : culprit + 1]
    return tuple(Note(text=f"{tensor.type} comes from here", span=tensor.span) for tensor in culprits if tensor.span)
