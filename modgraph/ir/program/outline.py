"""From a graph to the program that its author wrote: the nodes of a call become a definition, equal ones the same."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from modgraph.frozen import changed
from modgraph.ir.graph import Graph
from modgraph.ir.node import Call, InputNode, Node, OpNode, PoolNode, Result, ScanNode
from modgraph.ir.part import Region
from modgraph.ir.program.program import CallNode, DeferredNode, Definition, PlaceNode, Program
from modgraph.ir.program.relative import (
    OUTER,
    SELF,
    TAKEN,
    CallLevel,
    Level,
    Naming,
    RegionLevel,
    make_relative,
    marks_of,
    rename,
    rename_axes,
    without_marks,
)
from modgraph.ir.stored.nodes import node_to_json
from modgraph.ir.tree import Body, Placed, body_of
from modgraph.types import TensorType

CAPTURED = "outer."
VALUE = "$"  # before the number of a value that a definition takes
NUMBERED = re.compile(f"[{TAKEN}{VALUE}][0-9]+")

Operands = dict[Result, int] | None  # the values that a definition takes so far, none of a graph of its own


def outline(graph: Graph) -> Program:
    """The program of a graph: `flatten` gives the graph again, to the order of its nodes."""
    drafts = _Drafts(graph)
    for draft in drafts.known.values():
        _fill(draft.definition.graph, draft.lines, draft.name)
    body = _fill(Graph(graph.name, graph.parameters), drafts.lines, lambda name: name)
    return Program(body, tuple(draft.definition for draft in drafts.known.values()), drafts.weights)


def definitions_of(graph: Graph) -> dict[Call, int]:
    """A number for each call of a graph, in regions too: the same for calls of one definition whose nodes are frozen,
    start and have grown alike."""
    return _Drafts(graph).kinds


# ------------------------------------------------------------ bodies while they are drafted


@dataclass(frozen=True)
class _Line:
    """A node as its body says it, and what it reads; `place` is where its marks stand, `call` what a call is of."""

    node: Node
    inputs: Mapping[str, Result]
    uses: Mapping[str, str] = field(default_factory=dict)
    regions: tuple[_Lines, ...] = ()
    place: str = ""
    call: Call | None = None

    def content(self) -> list[Any]:
        inputs = [[slot, each.node, each.index] for slot, each in self.inputs.items()]
        return [node_to_json(without_marks(self.node)), inputs, dict(self.uses), [*map(_Lines.content, self.regions)]]


@dataclass(frozen=True)
class _Lines:
    """A body, and of a region its arguments and results; `places` says of pools and routers of bodies around after how
    many lines they stand."""

    lines: tuple[_Line, ...]
    places: dict[str, int]
    deferred: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()

    def content(self) -> list[Any]:
        """What makes two bodies the same: not where nodes of others stand, nor marks."""
        results = [[each.node, each.index] for each in self.results]
        return [[line.content() for line in self.lines], [*self.deferred], [*self.arguments], results]

    def all(self) -> Iterator[_Line]:
        """The lines of the body and its regions."""
        for line in self.lines:
            yield line
            for region in line.regions:
                yield from region.all()


@dataclass(eq=False)
class _Draft:
    """The body of a call, in which what it takes is numbered: `types` are those of the values among that, `words` what
    the author calls them. Calls of one definition share the first draft."""

    call: Call
    lines: _Lines
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
        """Make the definition, still without nodes but its inputs."""
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
        """The place of a value among the results, in the order in which calls first read them."""
        named = Result(self.name(result.node), result.index)
        if named not in self.results:
            self.results.append(named)
        return self.results.index(named)


class _Drafts:
    """The definitions of a graph by their content, what calls say otherwise of weights, and the lines of the graph."""

    def __init__(self, graph: Graph) -> None:
        self.known: dict[str, _Draft] = {}
        self.weights: dict[str, dict[str, Any]] = {}
        self.kinds: dict[Call, int] = {}
        self.names = frozenset(_names(graph))
        self._words: set[str] = set()
        self._numbers: dict[object, int] = {}
        self.lines = _Outline(graph, None, Level(), self).lines

    def intern(self, draft: _Draft) -> _Draft:
        """The first draft of the same content; marks that differ from it are kept."""
        if draft.content not in self.known:
            self.known[draft.content] = draft
            draft.define(_unique(draft.call.definition, self._words, numbered=True))
        known, marked = self.known[draft.content], list[object]()
        for first, line in zip(known.lines.all(), draft.lines.all(), strict=True):
            before, marks = marks_of(first.node), marks_of(line.node)
            if differ := {name: value for name, value in marks.items() if repr(value) != repr(before[name])}:
                self.weights[line.place] = differ
            marked += [repr(value) for name, value in marks.items() if name != "label"]
            marked += [self.kinds[line.call]] if line.call else []
        self.kinds[draft.call] = self._numbers.setdefault((draft.content, *marked), len(self._numbers))
        for name, at in draft.lines.places.items():
            known.lines.places.setdefault(name, at)
        return known


class _Outline:
    """The `lines` of one graph: of the model, or of a region, some of whose arguments are called as `captured` says;
    `pool` is where the marks of its nodes stand."""

    def __init__(
        self,
        graph: Graph,
        base: Call | None,
        level: Level,
        drafts: _Drafts,
        pool: str = "",
        captured: Mapping[str, str] | None = None,
    ) -> None:
        self.graph, self.drafts, self.pool, self.captured = graph, drafts, pool, captured or {}
        self.names: dict[str, str] = {}  # what bodies call their nodes
        self.calls: dict[Body, tuple[str, _Draft]] = {}
        root = body_of(graph, base)
        self.homes = dict(_homes(root))
        self.lines = self._lines(root, level, None)
        self.read = lambda result: self._read(result, root, None)

    def _lines(self, body: Body, level: Level, operands: Operands) -> _Lines:
        nodes = [item.name for item in body.items if isinstance(item, Node)]
        used = {*map(level.node, nodes), *map(level.weights, nodes)}
        lines, placed = list[_Line](), dict[str, int]()
        for item in body.items:
            match item:
                case Placed():
                    placed[item.node.name] = len(lines)
                case Body():
                    lines.append(self._call(item, body, level, operands, used))
                case _:
                    lines.append(self._line(item, body, level, operands))
        places = {level.owner(name): at for name, at in placed.items()}
        return _Lines(tuple(lines), places, tuple(map(level.owner, body.deferred)))

    def _line(self, node: Node, body: Body, level: Level, operands: Operands) -> _Line:
        said = make_relative(node, level)
        said = changed(said, name=self.captured.get(node.name) or said.name)
        self.names[node.name] = said.name
        inputs = {slot: self._read(each, body, operands) for slot, each in self.graph.inputs(node.name).items()}
        regions: tuple[_Lines, ...] = ()
        if isinstance(node, PoolNode):
            inside, place = RegionLevel(level, self.drafts.names), f"{self.pool}{node.name}"
            regions = tuple(
                self._region(each, None, inside, f"{place}/{at}/", {}) for at, each in enumerate(node.regions)
            )
        if isinstance(node, ScanNode):
            captured = _captured(node, self.graph)
            regions = (self._region(node.region, node.within, level, self.pool, captured),)
            inputs = {captured.get(slot) or level.node(slot): each for slot, each in inputs.items()}
        uses = {role: level.owner(name) for role, name in self.graph.uses(node.name).items()}
        return _Line(said, inputs, uses, regions, self.pool + node.name)

    def _region(
        self, region: Region, base: Call | None, level: Level, pool: str, captured: Mapping[str, str]
    ) -> _Lines:
        inner = _Outline(region.graph, base, level, self.drafts, pool, captured)
        arguments = tuple(captured.get(name) or level.node(name) for name in region.arguments)
        return changed(inner.lines, arguments=arguments, results=tuple(map(inner.read, region.results)))

    def _call(self, body: Body, outer: Body, level: Level, operands: Operands, used: set[str]) -> _Line:
        call = body.call
        assert call is not None
        inside, taken = CallLevel(call, level), dict[Result, int]()
        lines = self._lines(body, inside, taken)
        types = [rename_axes(self.graph.type_of(each), inside.owner) for each in taken]
        draft = self.drafts.intern(_Draft(call, lines, inside, types, [*map(self._word, taken)]))
        path = name = level.node(call.path)
        weights = "" if level.weights(call.weights) == path else level.owner(call.weights)
        number = 1
        while name in used:
            number += 1
            name = f"{path}~{number}"
        used.add(name)
        self.calls[body] = name, draft
        facts: Any = {"weights": weights, "key": call.key, "names": tuple(inside.takes.values())}
        node = CallNode(name=name, definition=draft.definition, span=call.span, **facts)
        given = [self._read(each, outer, operands) for each in taken]
        return _Line(node, dict(zip(draft.definition.operands, given, strict=True)), call=call)

    def _word(self, result: Result) -> str:
        """What the author calls a value: the first word of its node's name in its body."""
        name, call = self.names[result.node], self.homes[result.node].call
        return call.definition if name == SELF and call else name.lstrip(OUTER).partition(".")[0]

    def _read(self, result: Result, body: Body, operands: Operands) -> Result:
        """What a body calls a value: its own, a result of a call in it, or one that it takes."""
        home: Body | None = self.homes.get(result.node)
        path = []
        while home is not None and home is not body:
            path.append(home)
            home = home.outer
        if home is None:
            assert operands is not None, f"{result} is not there"
            return Result(f"{VALUE}{operands.setdefault(result, len(operands))}")
        found = Result(self.names[result.node], result.index)
        for each in path:
            name, draft = self.calls[each]
            found = Result(name, draft.request(found))
        return found


def _homes(body: Body) -> Iterator[tuple[str, Body]]:
    """The body that each node stands in."""
    for item in body.items:
        if isinstance(item, Body):
            yield from _homes(item)
        elif isinstance(item, Node):
            yield item.name, body


# ------------------------------------------------------------ drafts made into graphs


def _fill(graph: Graph, body: _Lines, name: Naming) -> Graph:
    """Add the nodes of a body, under the names that it gives to what it takes."""
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
            graph.add(_named(line, name), inputs, {role: name(used) for role, used in line.uses.items()})
    return graph


def _named(line: _Line, name: Naming) -> Node:
    node = rename(line.node, name(line.node.name), name)
    regions = tuple(
        Region(
            _fill(Graph(""), each, name),
            tuple(map(name, each.arguments)),
            tuple(Result(name(result.node), result.index) for result in each.results),
        )
        for each in line.regions
    )
    match node:
        case OpNode():
            return changed(node, owner=name(node.owner))
        case PoolNode():
            return changed(node, regions=regions)
        case ScanNode():
            return changed(node, region=regions[0])
        case CallNode():
            node = changed(node, weights=name(node.weights), names=tuple(map(name, node.names)))
            return changed(node, types=node.yields())
        case _:
            return node


def _unique(word: str, used: set[str], numbered: bool = False) -> str:
    """A word that was not used yet, and is now."""
    found, count = word, 1
    while found in used:
        count += 1
        found = f"{word}{count}" if numbered else f"{found}_"
    used.add(found)
    return found


def _last_word(name: str) -> str:
    """What the author calls a pool, a router or an axis: without the path and the key of a member."""
    return next((word for word in reversed(name.split(".")) if not word.isdecimal()), name)


def _captured(scan: ScanNode, graph: Graph) -> dict[str, str]:
    """The arguments of a scan that are called after the value outside, and what they are called by their place."""
    found = {}
    for at, name in enumerate(scan.captured):
        prefix = captured_name(graph.inputs(scan.name)[name])
        if name.rstrip("_") == prefix.rstrip("_") and name.startswith(prefix):
            found[name] = f"{CAPTURED}{at}{name[len(prefix) :]}"
    return found


def captured_name(source: Result) -> str:
    """What a scan's argument is called that is a value from outside."""
    return f"{CAPTURED}{source.node}" + (f".{source.index}" if source.index else "")


def _names(graph: Graph) -> Iterator[str]:
    """The names of pools, routers and axes of a graph, in scans too."""
    for node in (node for part in graph.parts() for node in part.graph):
        if not node.types:
            yield node.name
        for type_ in node.types:
            yield from (axis.name for axis in type_.shape)
            yield type_.of
