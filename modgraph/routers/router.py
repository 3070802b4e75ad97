"""The base of all routers, the registry that their declarations fill, and routers that are written in the language.

Axis letters: N senders (tokens), M modules of the pool, D width of a token, V width of a module's result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from modgraph.declare import Declaration, Record, Registry, Signature
from modgraph.types import Axes, Axis, Misfit, Shape, TensorType, require_distinct, shapes_meet

DEFINITION = "message_passing"  # the form that all others must equal


@dataclass(frozen=True)
class RouterText:
    """A router that is written in the language: the name of its definition and its arguments, each with its value as a
    spec writes it, those that differ from their default and those that do not."""

    name: str
    given: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        written = ", ".join(f"{name}={value}" for name, value in self.given)
        return f"{self.name}({written})" if written else self.name


@dataclass(frozen=True)
class RouterFacts:
    """How a router decides: what a route's value has vectors for, along what it chooses (None: every module takes
    part), how many modules a sender reaches at most (0: any number), whether it wants a balance loss, whether it
    draws."""

    one_for_each: Literal["sender", "module", "pair"] = "sender"
    chooses_along: Literal["modules", "senders"] | None = None
    k: int = 0
    balanced: bool = False
    draws: bool = False


@dataclass(frozen=True)
class PoolFacts:
    """What a router may know of the pool it serves, without its weights."""

    size: int
    affine: bool
    axis: str = ""  # of its modules, by name
    gathers: bool = False  # modules of one kind, whose weights can be taken by index
    weights: int = 0  # of one module
    in_scan: bool = False  # used once for each step of a sequence, where nothing may depend on how many chose a module
    over_batch: bool = False  # a module's result for a message depends on its other messages


@dataclass(frozen=True)
class PoolTypes:
    """What a pool's modules take and yield, and how many there are."""

    name: str
    axis: Axis  # that of its modules
    message: TensorType
    result: TensorType
    over_batch: bool = False  # a module's result for a message depends on its other messages

    @property
    def size(self) -> int:
        assert self.axis.size is not None, "a pool has a number of modules"
        return self.axis.size


def check_padding(pool: PoolTypes, outer: Shape) -> None:
    """Raises `Misfit` where padding among the messages would change a module's results for the others."""
    padded = next((axis for axis in outer if axis.is_padded), None)
    if pool.over_batch and padded is not None:
        reason = f'modules of "{pool.name}" depend on all of their messages, also on padding of "{padded}"'
        raise Misfit(reason, "use layer_norm or group_norm in it, or give the axis a number in the input's type", 0)


@dataclass(frozen=True)
class Lowering:
    """One way to compute a route. `form` is its name, `route` the import path of the torch module.

    One that is not `exportable` serves training alone: a bundle has a faster one, or cannot compute it.
    """

    form: str
    route: str
    reason: str
    exportable: bool = True


class RecordsOf:
    """What a router records, where that depends on its settings; `otherwise` of the class itself."""

    def __init__(self, of: Callable[[Any], tuple[Record, ...]], otherwise: tuple[Record, ...] = ()) -> None:
        self.of = of
        self.otherwise = otherwise

    def __get__(self, router: Router | None, kind: type[Router]) -> tuple[Record, ...]:
        return self.otherwise if router is None else self.of(router)


class Router(Declaration):
    """Scores edges between senders and receivers, selects some, and reduces the messages they carry.

    `results` are the axes of a route's value; it yields its `records` after it, in their order.
    `reference` is the torch_geometric form, the definition that all lowerings must equal.
    """

    registry: ClassVar[Registry[Router]] = Registry("router")

    results = ("... N V",)
    one_for_each: ClassVar[Literal["sender", "module", "pair"]] = "sender"  # what a route's value has vectors for
    records: ClassVar[tuple[Record, ...]] = ()
    reference: ClassVar[str]
    chooses_along: ClassVar[Literal["modules", "senders"] | None] = "modules"  # None: every module takes part
    masks_each: ClassVar[bool] = False  # its torch forms take a mask for each operand, where others take the first's
    senders: ClassVar[bool] = True  # the axis before a message is that of the senders; size 1 if absent
    takes_one: ClassVar[bool] = False  # its torch forms take a single sender without that axis, all else without it too

    @property
    def facts(self) -> RouterFacts:
        """How it decides."""
        return RouterFacts(self.one_for_each, self.chooses_along)

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        """This router over a pool, for what it routes and its extra operands. Raises `Misfit`."""
        single = not self.outer(pool, tokens)
        if single:
            tokens = tokens.with_shape((1, *tokens.shape))
        if len(pool.result.shape) != 1:
            reason = f'it needs modules that yield vectors, and those of "{pool.name}" yield {pool.result}'
            raise Misfit(reason, "end the pool's modules with: -> flatten")
        signature = self.bind(tokens, *others, M=pool.axis, V=pool.result.shape[0])
        return replace(signature, results=self._for_one(signature.results)) if single else signature

    def outer(self, pool: PoolTypes, tokens: TensorType) -> Shape:
        """The axes of what is routed beyond those of a message, the senders' last. Raises `Misfit`."""
        split = len(tokens.shape) - len(pool.message.shape)
        if split < 0 or not shapes_meet(tokens.shape[split:], pool.message.shape):
            raise Misfit(f'the modules of pool "{pool.name}" take {pool.message}, not {tokens}', operand=0)
        return tokens.shape[:split]

    def _for_one(self, results: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The results for a value without an axis of senders, whose own result has none either."""
        value, *records = results
        if self.one_for_each == "sender":
            value = value.with_shape((*value.shape[:-2], value.shape[-1]))
        return (value, *records)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The types of the value and of the records. Senders that are modules' results themselves are plain beside the
        axis of modules."""
        modules, results = axes["M"], []
        for pattern in (*self.results, *(record.axes for record in self.records)):
            shape = axes.list_axes(pattern)
            last = max((at for at, axis in enumerate(shape) if axis == modules), default=-1)
            plain = (Axis(axis.size) if axis == modules and at != last else axis for at, axis in enumerate(shape))
            results.append(TensorType("float", require_distinct(tuple(plain))))
        return tuple(results)

    def senders_in(self, signature: Signature) -> Any:
        """How many senders a route has, outer axes left out."""
        return signature.axes.resolve("N")

    def deterministic(self) -> Router:
        """The same router without noise, sampling and capacity: for inference."""
        return self

    def active_modules(self, size: int) -> int:
        """How many of a pool's modules one sender reaches."""
        return size

    def active_messages(self, signature: Signature, size: int) -> int:
        """How many messages one decision sends through a pool of a size, outer axes left out."""
        return int(self.senders_in(signature)) * self.active_modules(size)

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        """The forms that can compute a route over this pool, the best first."""
        return (self.reference_form,)

    @property
    def reference_form(self) -> Lowering:
        return definition(self.reference)


def definition(route: str) -> Lowering:
    """The form that all others must equal, by the import path of its torch module."""
    return Lowering(DEFINITION, route, "torch_geometric message passing, the definition")
