"""A scene: the nested view of a graph, the source of drawings and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from modgraph.diagnostics import Source
from modgraph.inspect.cost import Cost
from modgraph.version import VERSION

FORMAT = 1
NOTHING = Cost()


@dataclass(frozen=True)
class Row:
    """A weight or record of a box: its name, its shape or type as text, and a role or `frozen`."""

    name: str
    type: str
    note: str = ""


@dataclass(frozen=True)
class Lines:
    """Characters `start` to `end` of a source, on its lines `first` to `last`; lines count from 1."""

    source: str
    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Box:
    """A node of the graph, or a group of nodes; `children` stand inside.

    Kinds of nodes: input, target, tokenizer, op, pool, router, route, scan, output, loss. Kinds of groups: tokenizer,
    block, repeat. A homogeneous pool has one drawn module and a `count`; any other has its modules as children. A route
    has its router, with the router's text, and its pool inside; if others use them too, the text alone. A repeat has
    `count` times `period` children; each that repeats names the child of the first period that it is the `same_as`.
    `cost` is of the box and all in it. A block that is `built_in` is folded at first. A box that `serves` only losses
    or lengths can be left out. A drawing to some depth has `folded` boxes.
    """

    id: str
    kind: str
    label: str
    detail: str = ""
    help: str = ""
    types: tuple[str, ...] = ()
    short: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    cost: Cost = NOTHING
    weights: tuple[Row, ...] = ()
    records: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    lines: Lines | None = None
    children: tuple[Box, ...] = ()
    count: int = 1
    period: int = 1
    same_as: str = ""
    built_in: bool = False
    serves: str = ""
    folded: bool = False

    def walk(self) -> Iterator[Box]:
        """This box and all in it, outer before inner."""
        yield self
        for child in self.children:
            yield from child.walk()

    def as_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        record = {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}
        record |= {name: [*map(asdict, record[name])] for name in ("weights", "records") if name in record}
        record |= {"alike": record.pop("same_as")} if self.same_as else {}
        record |= {"settings": dict(self.settings)} if self.settings else {}
        if any(record.pop("cost", NOTHING).counts.values()):
            record["counts"] = self.cost.counts
        record |= {"lines": asdict(self.lines)} if self.lines is not None else {}
        record |= {"period": self.period} if self.kind == "repeat" else {}
        record |= {"children": [child.as_json() for child in self.children]} if self.children else {}
        return record


@dataclass(frozen=True)
class Edge:
    """An edge between boxes: `data` into a slot, `length` of an axis, `uses` of a route, `carry` of a scan's state."""

    source: str
    target: str
    kind: str
    slot: str = ""
    type: str = ""
    short: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}


@dataclass(frozen=True)
class Scene:
    """A graph as boxes and edges.

    `lengths` are the lengths with which MACs of axes of any length were counted. `sources` are the spec and its
    imports.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    cost: Cost
    lengths: tuple[tuple[str, int], ...] = ()
    sources: tuple[Source, ...] = ()

    def walk(self) -> Iterator[Box]:
        """All boxes, outer before inner."""
        for box in self.boxes:
            yield from box.walk()

    def as_json(self) -> dict[str, Any]:
        return {
            "modgraph": VERSION,
            "format": FORMAT,
            "name": self.name,
            "parameters": dict(self.parameters),
            "lengths": dict(self.lengths),
            "counts": self.cost.counts,
            "boxes": [box.as_json() for box in self.boxes],
            "edges": [edge.as_json() for edge in self.edges],
            "sources": [{"name": source.label, "text": source.text} for source in self.sources],
        }
