"""A program: definitions, and a body that calls them. Programs are printed and stored; `flatten` gives the graph."""

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
    """The first use of a pool or a router that a surrounding body declares. `placed` is its name."""

    placed: str


@dataclass(frozen=True, kw_only=True)
class DeferredNode(Node, kind="deferred"):
    """Marks a pool or a router of this body as placed by a call in it."""

    placed: str


@dataclass(frozen=True, eq=False)
class Definition:
    """A block, the text of a router, a module, or equal rounds of a loop.

    `author` is the author's name; `name` distinguishes definitions with one author's name. The inputs of `graph` are
    the values that it takes. `takes` has the names of pools, routers, modules and axes from outside. `axes` are its own
    axes below the path of its nodes; all others stand below the path of its weights. `members` are the names that the
    loop's variable indexes. Callers read `results`.
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

    `path` is the path of its nodes, and also its name; a number behind `~` distinguishes two calls with one path.
    `weights` is the path of its weights if that differs. A round has its `key`. `names` binds the names that the
    definition takes to names in this body. Operands flow into slots with the names of the definition's operands.
    """

    definition: Definition
    weights: str = ""
    key: int | str | None = None
    names: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return self.name.partition("~")[0]

    def yields(self) -> tuple[TensorType, ...]:
        """The types of its results, in the names of the caller."""
        definition, names = self.definition, dict(zip(self.definition.takes, self.names, strict=True))
        place = Place(self.path, self.weights or self.path, self.key, None, names, definition.axes)
        return tuple(rename_axes(definition.graph.type_of(each), place.owner) for each in definition.results)


@dataclass(frozen=True)
class Program:
    """A model: its body, and all definitions, each after those that it calls.

    `weights` has, by the place of a node, the marks that differ from the definition: `frozen`, `initial`, `grown`.
    """

    body: Graph
    definitions: tuple[Definition, ...] = ()
    weights: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
