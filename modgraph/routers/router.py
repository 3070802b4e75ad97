"""The base class of routers, their registry, lowerings, and routers written in the language.

Axis letters: N tokens, M modules of the pool, D width of a token, V width of a module's result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from modgraph.declare import Declaration, Record, Registry, Signature
from modgraph.declare.indexing import read_everything
from modgraph.types import Axes, Axis, Misfit, Shape, TensorType, require_distinct, shapes_meet

DEFINITION = "message_passing"  # the lowering that defines all others


@dataclass(frozen=True)
class RouterText:
    """A router written in the language: the name of its definition, and its arguments as a spec writes them.

    `given` has the arguments that differ from their default, `defaults` the others.
    """

    name: str
    given: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        written = ", ".join(f"{name}={value}" for name, value in self.given)
        return f"{self.name}({written})" if written else self.name


@dataclass(frozen=True)
class RouterFacts:
    """Facts of a router that traces, losses and exports read.

    `one_for_each` names the axis for whose places a route's value has vectors. `chooses_along` is the axis of the
    choice; None if every module takes part. `k` bounds the modules that a token reaches; 0 is no bound. `balanced`
    routers need a balance loss; `draws` means that the choice is random.
    """

    one_for_each: Literal["sender", "module", "pair"] = "sender"
    chooses_along: Literal["modules", "senders"] | None = None
    k: int = 0
    balanced: bool = False
    draws: bool = False


@dataclass(frozen=True)
class PoolFacts:
    """Facts of a pool from which a router derives its lowerings."""

    size: int
    affine: bool
    axis: str = ""  # the name of the axis of modules
    gathers: bool = False  # the pool is homogeneous, and its weights can be gathered by index
    weights: int = 0  # the number of weights of one module
    in_scan: bool = False  # the route runs at each step of a scan, where no size may depend on the choice
    over_batch: bool = False  # a module's result for a message depends on its other messages


@dataclass(frozen=True)
class PoolTypes:
    """The types of a pool's messages and results, and its axis of modules."""

    name: str
    axis: Axis  # the axis of modules
    message: TensorType
    result: TensorType
    over_batch: bool = False  # a module's result for a message depends on its other messages

    @property
    def size(self) -> int:
        assert self.axis.size is not None, "a pool has a number of modules"
        return self.axis.size


def check_padding(pool: PoolTypes, outer: Shape) -> None:
    """Raise `Misfit` if padding among the messages would change a module's other results."""
    padded = next((axis for axis in outer if axis.is_padded), None)
    if pool.over_batch and padded is not None:
        reason = f'modules of "{pool.name}" depend on all of their messages, also on padding of "{padded}"'
        raise Misfit(reason, "use layer_norm or group_norm in it, or give the axis a number in the input's type", 0)


@dataclass(frozen=True)
class Lowering:
    """One way to compute a route; `route` is the import path of its torch module.

    A lowering that is not `exportable` is for training only: a bundle has a faster one, or cannot compute it.
    """

    name: str
    route: str
    reason: str
    exportable: bool = True


class RecordsOf:
    """A descriptor for records that depend on a router's settings; on the class it gives `otherwise`."""

    def __init__(self, of: Callable[[Any], tuple[Record, ...]], otherwise: tuple[Record, ...] = ()) -> None:
        self.of = of
        self.otherwise = otherwise

    def __get__(self, router: Router | None, kind: type[Router]) -> tuple[Record, ...]:
        return self.otherwise if router is None else self.of(router)


class Router(Declaration):
    """Base of routers: they score edges between tokens and modules, choose some, and sum their messages.

    `results` are the axes of a route's value; its `records` follow in their order. `reference` is the import path of
    the torch_geometric module that all lowerings must equal.
    """

    registry: ClassVar[Registry[Router]] = Registry("router")

    results = ("... N V",)
    indexing: ClassVar[Any] = (
        read_everything  # as of an op; its first operand are the modules' results for each of its outer axes
    )
    one_for_each: ClassVar[Literal["sender", "module", "pair"]] = (
        "sender"  # the axis for whose places a route's value has vectors
    )
    records: ClassVar[tuple[Record, ...]] = ()
    reference: ClassVar[str]
    chooses_along: ClassVar[Literal["modules", "senders"] | None] = "modules"  # None: every module takes part
    masks_each: ClassVar[bool] = False  # its torch modules take a mask for each operand, not only for the first
    token_axis: ClassVar[bool] = True  # the axis before a message is the axis of tokens; size 1 if absent
    takes_one: ClassVar[bool] = (
        False  # its torch modules take a single token, and its other operands, without that axis
    )

    @property
    def facts(self) -> RouterFacts:
        """Facts that traces, losses and exports read."""
        return RouterFacts(self.one_for_each, self.chooses_along)

    def bind_pool(self, pool: PoolTypes, tokens: TensorType, *others: TensorType) -> Signature:
        """Bind this router to a pool, for the types of tokens and other operands. Raises `Misfit`."""
        single = not self.outer(pool, tokens)
        if single:
            tokens = tokens.with_shape((1, *tokens.shape))
        if len(pool.result.shape) != 1:
            reason = f'it needs modules that yield vectors, and those of "{pool.name}" yield {pool.result}'
            raise Misfit(reason, "end the pool's modules with: -> flatten")
        signature = self.bind(tokens, *others, M=pool.axis, V=pool.result.shape[0])
        return replace(signature, results=self._drop_token_axis(signature.results)) if single else signature

    def outer(self, pool: PoolTypes, tokens: TensorType) -> Shape:
        """The axes of tokens before those of a message, the axis of tokens last. Raises `Misfit`."""
        split = len(tokens.shape) - len(pool.message.shape)
        if split < 0 or not shapes_meet(tokens.shape[split:], pool.message.shape):
            raise Misfit(f'the modules of pool "{pool.name}" take {pool.message}, not {tokens}', operand=0)
        return tokens.shape[:split]

    def _drop_token_axis(self, results: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Drop the axis of tokens from the results for a single token."""
        value, *records = results
        if self.one_for_each == "sender":
            value = value.with_shape((*value.shape[:-2], value.shape[-1]))
        return (value, *records)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Infer the types of the value and of the records. An axis of tokens that is the axis of modules loses its
        name."""
        modules, results = axes["M"], []
        for pattern in (*self.results, *(record.axes for record in self.records)):
            shape = axes.list_axes(pattern)
            last = max((at for at, axis in enumerate(shape) if axis == modules), default=-1)
            plain = (Axis(axis.size) if axis == modules and at != last else axis for at, axis in enumerate(shape))
            results.append(TensorType("float", require_distinct(tuple(plain))))
        return tuple(results)

    def count_tokens(self, signature: Signature) -> Any:
        """Count the tokens of a route, without outer axes."""
        return signature.axes.resolve("N")

    def deterministic(self) -> Router:
        """Return this router for inference: without noise, sampling and capacity."""
        return self

    def active_modules(self, size: int) -> int:
        """Count the modules that one token reaches."""
        return size

    def active_messages(self, signature: Signature, size: int) -> int:
        """Count the messages of one decision through a pool of this size, without outer axes."""
        return int(self.count_tokens(signature)) * self.active_modules(size)

    def lowerings(self, pool: PoolFacts) -> tuple[Lowering, ...]:
        """List the lowerings of a route over this pool, best first."""
        return (self.reference_lowering,)

    @property
    def reference_lowering(self) -> Lowering:
        return definition(self.reference)


def definition(route: str) -> Lowering:
    """The lowering that defines all others, by the import path of its torch module."""
    return Lowering(DEFINITION, route, "torch_geometric message passing, the definition")
