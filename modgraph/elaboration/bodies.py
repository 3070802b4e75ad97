"""Bodies of definitions while they are elaborated: one use of a block, and what a router decides in one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from modgraph.declare import Role
from modgraph.diagnostics import Span
from modgraph.elaboration.entities import Tensor
from modgraph.elaboration.scope import Naming
from modgraph.ir import Result
from modgraph.syntax import ast
from modgraph.types import Axis, Shape


@dataclass
class Decision:
    """What a router decides while its body is elaborated: what it recorded, each time by name, and in what roles.

    It is declared at `span` by the path `router`. `naming` is that of what names axes, `words` are those that its body
    names axes by, `named` the axes that got a name for them; what it routes has none of the `lacking`. What it routes
    enters first, as `routed`, whose axes before the last `message_rank`, those of a message, are its senders. `modules`
    is the axis of the modules; in what is routed it is one of senders like any other, `of_modules` with a name of its
    own. `read` are the records that have been read, by graph and result, as the surroundings see them.
    """

    router: str
    span: Span
    words: frozenset[str]
    naming: Naming
    modules: Axis | None = None
    message_rank: int = 0
    routed: Tensor | None = None
    shows_choice: bool = False
    records: dict[str, list[Any]] = field(default_factory=dict)
    roles: set[Role | None] = field(default_factory=set)
    named: dict[str, Axis] = field(default_factory=dict)
    lacking: set[Axis] = field(default_factory=set)
    of_modules: set[Axis] = field(default_factory=set)
    read: dict[tuple[int, Result], Any] = field(default_factory=dict)

    @property
    def senders(self) -> Shape:
        """The axes of the senders, as the body sees them, that what is routed has."""
        shape = () if self.routed is None else self.routed.type.shape
        return tuple(axis for axis in shape[: len(shape) - self.message_rank] if axis not in self.lacking)

    def name_outside(self, axis: Axis, shape: Shape) -> str:
        """What the surroundings call an axis that the body names, in a value of some shape; none if it is plain."""
        modules = self.modules if axis in self.of_modules else None
        return modules.name if modules is not None and modules not in shape else ""

    def shape_outside(self, shape: Shape) -> Shape:
        """A shape as the surroundings name its axes."""
        named = {*self.named.values()}
        return tuple(Axis(each.size, self.name_outside(each, shape)) if each in named else each for each in shape)


@dataclass
class BlockCall:
    """One use of a block while its body is elaborated: operands not yet taken and how many inputs there were, axes they
    bound, the first input with each name of an axis, names of the senders' axes from the last with the first input that
    has them, outputs so far, of which a family is one.

    Without operands it is no use: the block is checked by itself, its inputs being of the types it declares.
    `decision` is that of a router, if it is one. `defining` are the definitions in whose text the use stands, and its
    own: none of them is used in its own text.
    """

    name: str
    operands: list[Tensor] | None
    axes: dict[str, Any] = field(default_factory=dict)
    named_by: dict[str, ast.Input] = field(default_factory=dict)
    senders: dict[int, tuple[str, ast.Input]] = field(default_factory=dict)
    taken: int = 0
    outputs: list[Any] = field(default_factory=list)
    span: Span | None = None
    decision: Decision | None = None
    defining: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f'{"block" if self.decision is None else "router"} "{self.name}"'
