"""A program: definitions, and a body that calls them. What is printed and stored of a graph; `flatten` gives the
graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.node import Kind, Node, Result
from modgraph.ir.program.relative import Place, rename_axes
from modgraph.types import TensorType


@dataclass(frozen=True, kw_only=True)
class PlaceNode(Node, kind="place"):
    """Where a pool or a router that a body around this one declares stands in the order of the whole graph: `placed` is
    used here for the first time."""

    placed: str


@dataclass(frozen=True, kw_only=True)
class DeferredNode(Node, kind="deferred"):
    """Says of a pool or a router of this body that a call in it places it."""

    placed: str


@dataclass(frozen=True, eq=False)
class Definition:
    """A block, the text of a router, a module, or the rounds of a loop that are the same.

    `author` is what the author calls it; `name` tells definitions of one author's name apart. The inputs of `graph` are
    the values that it takes, `takes` the names of the pools, routers, modules and axes. `axes` are those of its own
    that stand below the path of its nodes, where all others stand below that of its weights. `members` are the names
    that the loop's variable gives a key. `results` are the values that callers read.
    """

    name: str
    kind: Kind
    author: str
    graph: Graph
    results: Sequence[Result]
    takes: tuple[str, ...] = ()
    axes: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the values that it takes."""
        return tuple(self.graph.input_types)


@dataclass(frozen=True, kw_only=True)
class CallNode(Node, kind="call"):
    """A use of a definition, in the body of another or of the program.

    `path` is that of its nodes; the name is the same, with a number behind `~` where two calls have one path. `weights`
    is the path of its weights, if it is another; `key` that of a round. `names` says what the names that the definition
    takes are here. Values flow into the slots that are called as the definition's operands.
    """

    definition: Definition
    weights: str = ""
    key: int | str | None = None
    names: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return self.name.partition("~")[0]

    def yields(self) -> tuple[TensorType, ...]:
        """The types of its results, as the caller says them."""
        definition, names = self.definition, dict(zip(self.definition.takes, self.names, strict=True))
        place = Place(self.path, self.weights or self.path, self.key, None, names, definition.axes)
        return tuple(rename_axes(definition.graph.type_of(each), place.owner) for each in definition.results)


@dataclass(frozen=True)
class Program:
    """A model: its body, and the definitions that the body and they themselves call, each after those that it calls.

    `weights` says by the place of a node what differs there from its definition: `frozen`, `initial`, `grown`.
    """

    body: Graph
    definitions: tuple[Definition, ...] = ()
    weights: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
