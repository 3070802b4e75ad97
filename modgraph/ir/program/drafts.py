"""Drafts of definitions while a graph is outlined: bodies that number the names from outside, and the graphs that they
become."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from modgraph.frozen import replace_fields
from modgraph.ir.graph import Graph
from modgraph.ir.node import Call, InputNode, Node, OpNode, Result
from modgraph.ir.part import Region, with_regions
from modgraph.ir.program.program import CallNode, DeferredNode, Definition, PlaceNode
from modgraph.ir.program.relative import TAKEN, CallLevel, Naming, clear_marks, collect_marks, rename, rename_axes
from modgraph.ir.stored.nodes import node_to_json
from modgraph.types import TensorType

VALUE = "$"  # before the number of an operand of a definition
NUMBERED = re.compile(f"[{TAKEN}{VALUE}][0-9]+")


@dataclass(frozen=True)
class Line:
    """A node of a body with its sources. `place` is the place of its marks; a call has its `call`."""

    node: Node
    inputs: Mapping[str, Result]
    uses: Mapping[str, str] = field(default_factory=dict)
    regions: tuple[Lines, ...] = ()
    place: str = ""
    call: Call | None = None

    def content(self) -> list[Any]:
        inputs = [[slot, each.node, each.index] for slot, each in self.inputs.items()]
        return [node_to_json(clear_marks(self.node)), inputs, dict(self.uses), [*map(Lines.content, self.regions)]]


@dataclass(frozen=True)
class Lines:
    """The lines of a body; a region also has arguments and results.

    `places` has, for each pool or router of a surrounding body, the number of lines before its first use.
    """

    lines: tuple[Line, ...]
    places: dict[str, int]
    deferred: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()

    def content(self) -> list[Any]:
        """The content that equal bodies share: lines without marks and without places of other bodies' nodes."""
        results = [[each.node, each.index] for each in self.results]
        return [[line.content() for line in self.lines], [*self.deferred], [*self.arguments], results]

    def all(self) -> Iterator[Line]:
        """Yield the lines of the body and its regions."""
        for line in self.lines:
            yield line
            for region in line.regions:
                yield from region.all()


@dataclass(eq=False)
class Draft:
    """The body of a call with numbers for names from outside.

    `types` are the types of the values among them, `words` the author's names. Calls of one definition share the first
    draft.
    """

    call: Call
    lines: Lines
    level: CallLevel
    types: list[TensorType]
    words: list[str]
    given: dict[str, str] = field(default_factory=dict)  # the name for each number
    results: list[Result] = field(default_factory=list)

    @cached_property
    def content(self) -> str:
        call, level = self.call, self.level
        types = [each.as_json() for each in self.types]
        head = [call.kind, call.definition, sorted(call.members), [*level.axes], len(level.takes), types]
        return json.dumps([head, self.lines.content()], ensure_ascii=False)

    def define(self, name: str) -> None:
        """Make the definition, with inputs and no other nodes yet."""
        call, level = self.call, self.level
        used = {*level.own, *level.axes, *(line.node.name for line in self.lines.lines)}
        takes = {f"{TAKEN}{at}": _unique(_last_word(taken), used) for at, taken in enumerate(level.takes)}
        values = {f"{VALUE}{at}": _unique(word, used) for at, word in enumerate(self.words)}
        self.given = takes | values
        facts: Any = {"takes": (*takes.values(),), "axes": frozenset(level.axes), "members": call.members}
        self.definition = Definition(name, call.kind, call.definition, Graph(name), self.results, **facts)
        for value, type_ in zip(values.values(), self.types, strict=True):
            self.definition.graph.add(InputNode(name=value, types=(rename_axes(type_, self.name),)))

    def name(self, name: str) -> str:
        return NUMBERED.sub(lambda found: self.given[found[0]], name)

    def request(self, result: Result) -> int:
        """Return the index of a value among the results, in the order in which calls first read them."""
        named = Result(self.name(result.node), result.index)
        if named not in self.results:
            self.results.append(named)
        return self.results.index(named)


class Drafts:
    """The definitions of a graph by content, the marks in which calls differ, and a number for each call.

    `names` are the pools, routers and axes of the graph.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.known: dict[str, Draft] = {}
        self.weights: dict[str, dict[str, Any]] = {}
        self.kinds: dict[Call, int] = {}
        self.names = frozenset(names)
        self._words: set[str] = set()
        self._numbers: dict[object, int] = {}

    def intern(self, draft: Draft) -> Draft:
        """Find or add the draft with this content, and keep the marks that differ from it."""
        if draft.content not in self.known:
            self.known[draft.content] = draft
            draft.define(_unique(draft.call.definition, self._words, numbered=True))
        known, marked = self.known[draft.content], list[object]()
        for first, line in zip(known.lines.all(), draft.lines.all(), strict=True):
            before, marks = collect_marks(first.node), collect_marks(line.node)
            if differ := {name: value for name, value in marks.items() if repr(value) != repr(before[name])}:
                self.weights[line.place] = differ
            marked += [repr(value) for name, value in marks.items() if name != "label"]
            marked += [self.kinds[line.call]] if line.call else []
        self.kinds[draft.call] = self._numbers.setdefault((draft.content, *marked), len(self._numbers))
        for name, at in draft.lines.places.items():
            known.lines.places.setdefault(name, at)
        return known


def fill(graph: Graph, body: Lines, name: Naming) -> Graph:
    """Add the nodes of a body, with the body's names for what comes from outside."""
    for placed in body.deferred:
        graph.add(DeferredNode(name=f"deferred {placed}", placed=name(placed)))
    places = defaultdict[int, list[str]](list)
    for placed, at in body.places.items():
        places[at].append(placed)
    for at in range(len(body.lines) + 1):
        for placed in places[at]:
            graph.add(PlaceNode(name=f"place {placed}", placed=name(placed)))
        for line in body.lines[at : at + 1]:
            inputs = {name(slot): Result(name(each.node), each.index) for slot, each in line.inputs.items()}
            graph.add(_make_node(line, name), inputs, {role: name(used) for role, used in line.uses.items()})
    return graph


def _make_node(line: Line, name: Naming) -> Node:
    regions = list[Region]()
    for each in line.regions:
        results = tuple(Result(name(result.node), result.index) for result in each.results)
        regions.append(Region(fill(Graph(""), each, name), tuple(map(name, each.arguments)), results))
    node = with_regions(rename(line.node, name(line.node.name), name), tuple(regions))
    match node:
        case OpNode():
            return replace_fields(node, owner=name(node.owner))
        case CallNode():
            node = replace_fields(node, weights=name(node.weights), names=tuple(map(name, node.names)))
            return replace_fields(node, types=node.yields())
        case _:
            return node


def _unique(word: str, used: set[str], numbered: bool = False) -> str:
    """Make a word unique among those used so far."""
    found, count = word, 1
    while found in used:
        count += 1
        found = f"{word}{count}" if numbered else f"{found}_"
    used.add(found)
    return found


def _last_word(name: str) -> str:
    """Return the author's name of a pool, a router or an axis, without path and key."""
    return next((word for word in reversed(name.split(".")) if not word.isdecimal()), name)
