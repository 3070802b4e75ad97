"""Definitions while they are drafted: their lines, with numbers for what they take."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph.ir.call import Call
from modgraph.ir.node import DecisionNode, Node, OpNode, PoolNode, Result, RouteNode, RouterNode, TargetNode
from modgraph.ir.program.relative import CallLevel
from modgraph.ir.stored.nodes import node_to_json
from modgraph.types import TensorType

VALUE = "$"  # before the number of a value that a definition takes

Marks = dict[str, Any]  # what of a node is no part of its definition: frozen, initial, grown, label


@dataclass(frozen=True)
class Line:
    """A node as its body says it, without marks, and what it reads; `place` is where the marks stand."""

    node: Node
    inputs: Mapping[str, Result]
    uses: Mapping[str, str]
    regions: tuple[Lines, ...] = ()
    place: str = ""
    marks: Marks = field(default_factory=dict)


@dataclass(frozen=True)
class CallLine:
    """A call of a draft: `names` and `operands` are what it takes here."""

    name: str
    weights: str
    call: Call
    draft: Draft
    names: tuple[str, ...]
    operands: tuple[Result, ...]


@dataclass(frozen=True)
class PlaceLine:
    """Where a pool or a router of a body around stands, after so many other lines."""

    name: str
    at: int


@dataclass(frozen=True)
class Lines:
    """A body: its lines, and of a region its arguments and results."""

    lines: tuple[Line | CallLine, ...]
    places: tuple[PlaceLine, ...] = ()
    deferred: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()

    def content(self) -> list[Any]:
        """What makes two bodies the same: not where nodes of others stand, nor marks."""
        results = [[each.node, each.index] for each in self.results]
        return [[*map(_content, self.lines)], [*self.deferred], [*self.arguments], results]

    def marked(self) -> Iterator[Line]:
        """The lines of all nodes, in regions too."""
        for line in self.lines:
            if isinstance(line, Line):
                yield line
                for region in line.regions:
                    yield from region.marked()


@dataclass(eq=False)
class Draft:
    """One definition: its body, the first call of it, and what calls read of it, in the order in which they first
    do."""

    call: Call
    body: Lines
    level: CallLevel
    types: tuple[TensorType, ...]  # of the values that it takes
    words: tuple[str, ...]  # what the author calls them in the first call
    results: dict[Result, int] = field(default_factory=dict)

    def request(self, result: Result) -> int:
        """The place of a value among the results."""
        return self.results.setdefault(result, len(self.results))


def content_of(draft: Draft) -> str:
    """The text that two drafts share if they are one definition."""
    call, level = draft.call, draft.level
    types = [each.as_json() for each in draft.types]
    head = [call.kind, call.definition, sorted(call.members), [*level.axes], len(level.takes), types]
    return json.dumps([head, draft.body.content()], ensure_ascii=False)


def _content(line: Line | CallLine) -> list[Any]:
    if isinstance(line, Line):
        inputs = [[slot, each.node, each.index] for slot, each in line.inputs.items()]
        return [node_to_json(line.node), inputs, dict(line.uses), [each.content() for each in line.regions]]
    operands = [[each.node, each.index] for each in line.operands]
    return [line.name, line.weights, line.call.key, id(line.draft), [*line.names], operands]


def marks_of(node: Node) -> Marks:
    """What of a node is no part of its definition."""
    match node:
        case OpNode():
            return {"frozen": node.frozen, "initial": node.initial}
        case RouterNode():
            return {"frozen": node.frozen}
        case PoolNode() | TargetNode():
            return {"grown": node.grown}
        case RouteNode() | DecisionNode():
            return {"label": node.label or node.name}
        case _:
            return {}


UNMARKED: Marks = {"frozen": False, "initial": None, "grown": 0, "label": ""}


def with_marks(node: Node, marks: Mapping[str, Any]) -> Node:
    """A node with other marks. A label that is the node's name is none."""
    facts: Any = {name: "" if (name, value) == ("label", node.name) else value for name, value in marks.items()}
    return replace(node, **facts) if marks else node


def without_marks(node: Node) -> Node:
    return with_marks(node, {name: UNMARKED[name] for name in marks_of(node)})
