"""From a graph to the program that its author wrote: the nodes of a call become a definition, equal ones the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph.ir.call import Call
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, PoolNode, Result, ScanNode
from modgraph.ir.program.drafts import (
    VALUE,
    CallLine,
    Draft,
    Line,
    Lines,
    PlaceLine,
    content_of,
    marks_of,
    without_marks,
)
from modgraph.ir.program.program import Program
from modgraph.ir.program.relative import OUTER, SELF, CallLevel, Level, RegionLevel, rename_axes
from modgraph.ir.program.rename import make_relative
from modgraph.ir.region import Region
from modgraph.ir.tree import Body, Placed, body_of

CAPTURED = "outer."

Operands = dict[Result, int] | None  # the values that a definition takes so far, none of a graph of its own


def outline(graph: Graph) -> Program:
    """The program of a graph: `flatten` gives the graph again, to the order of its nodes."""
    from modgraph.ir.program.build import build

    drafts = Drafts(graph)
    body = Outline(graph, None, Level(), drafts).body(body_of(graph))
    return build(graph, body, drafts.known.values(), drafts.weights)


@dataclass
class Drafts:
    """The definitions of one graph so far, by their content, and what calls say otherwise of weights."""

    graph: Graph
    known: dict[str, Draft] = field(default_factory=dict)
    weights: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.names = frozenset(_names(self.graph))

    def intern(self, draft: Draft) -> Draft:
        """The definition that a draft is; marks that differ from it are kept."""
        content = content_of(draft)
        known = self.known.setdefault(content, draft)
        for first, line in zip(known.body.marked(), draft.body.marked(), strict=True):
            differ = {name: value for name, value in line.marks.items() if repr(value) != repr(first.marks[name])}
            if differ:
                self.weights[line.place] = differ
        known.body = replace(known.body, places=_merged(known.body.places, draft.body.places))
        return known


class Outline:
    """The bodies of one graph: of the model, or of a region."""

    def __init__(self, graph: Graph, base: Call | None, level: Level, drafts: Drafts, pool: str = "") -> None:
        self.graph = graph
        self.base = base
        self.level = level
        self.drafts = drafts
        self.pool = pool  # where the marks of its nodes stand
        self.homes: dict[str, Body] = {}
        self.names: dict[Body, dict[str, str]] = {}
        self.lines: dict[Body, CallLine] = {}
        self.ids: dict[Body, set[str]] = {}

    def region(self, region: Region, captured: dict[str, str]) -> Lines:
        """A region, some of whose arguments have names of their own."""
        root = body_of(self.graph, self.base)
        lines = self.body(root, captured)
        arguments = tuple(captured.get(name) or self.level.node(name) for name in region.arguments)
        return replace(lines, arguments=arguments, results=tuple(self._read(each, root) for each in region.results))

    def body(self, root: Body, captured: dict[str, str] | None = None) -> Lines:
        """The lines of a graph's own body."""
        self._settle(root)
        return self._lines(root, self.level, None, captured or {})

    def _settle(self, body: Body) -> None:
        self.names[body] = {}
        for item in body.items:
            if isinstance(item, Body):
                self._settle(item)
            elif isinstance(item, Node):
                self.homes.setdefault(item.name, body)

    def _lines(self, body: Body, level: Level, operands: Operands, captured: dict[str, str]) -> Lines:
        nodes = [item.name for item in body.items if isinstance(item, Node)]
        self.ids[body] = {*map(level.node, nodes), *map(level.weights, nodes)}
        lines: list[Line | CallLine] = []
        places: list[tuple[str, int]] = []
        for item in body.items:
            match item:
                case Placed():
                    places.append((item.node.name, len(lines)))
                case Body():
                    self.lines[item] = self._call(item, body, level, operands)
                    lines.append(self.lines[item])
                case _:
                    line = self._line(item, body, level, operands, captured)
                    self.names[body][item.name] = line.node.name
                    lines.append(line)
        placed = tuple(PlaceLine(level.owner(name), at) for name, at in places)
        return Lines(tuple(lines), placed, tuple(map(level.owner, body.deferred)))

    def _line(self, node: Node, body: Body, level: Level, operands: Operands, captured: dict[str, str]) -> Line:
        marked = make_relative(node, level)
        said = without_marks(marked)
        if node.name in captured:
            said = replace(said, name=captured[node.name])
        inputs = {slot: self._read(each, body, operands) for slot, each in self.graph.inputs(node.name).items()}
        regions: tuple[Lines, ...] = ()
        if isinstance(node, PoolNode):
            regions = tuple(self._module(node, at, level) for at in range(len(node.regions)))
        if isinstance(node, ScanNode):
            inner = _captured(node, self.graph)
            scanned = Outline(node.region.graph, node.within, level, self.drafts, self.pool)
            regions = (scanned.region(node.region, inner),)
            inputs = {inner.get(slot) or level.node(slot): each for slot, each in inputs.items()}
        uses = {role: level.owner(name) for role, name in self.graph.uses(node.name).items()}
        return Line(said, inputs, uses, regions, self.pool + node.name, marks_of(marked))

    def _module(self, pool: PoolNode, at: int, level: Level) -> Lines:
        region, inside = pool.regions[at], RegionLevel(level, self.drafts.names)
        return Outline(region.graph, None, inside, self.drafts, f"{self.pool}{pool.name}/{at}/").region(region, {})

    def _call(self, body: Body, outer: Body, level: Level, operands: Operands) -> CallLine:
        call = body.call
        assert call is not None
        inside = CallLevel(call, level)
        taken: dict[Result, int] = {}
        lines = self._lines(body, inside, taken, {})
        types = tuple(rename_axes(self.graph.type_of(each), inside.owner) for each in taken)
        draft = self.drafts.intern(Draft(call, lines, inside, types, tuple(map(self._word, taken))))
        name = level.node(call.path)
        weights = "" if level.weights(call.weights) == name else level.owner(call.weights)
        unique, number = name, 1
        while unique in self.ids[outer]:
            number += 1
            unique = f"{name}~{number}"
        self.ids[outer].add(unique)
        given = tuple(self._read(each, outer, operands) for each in taken)
        return CallLine(unique, weights, call, draft, tuple(inside.takes.values()), given)

    def _word(self, result: Result) -> str:
        """What the author calls a value: the first word of its node's name in its body."""
        home = self.homes[result.node]
        name = self.names[home][result.node]
        return home.call.definition if name == SELF and home.call else name.lstrip(OUTER).partition(".")[0]

    def _read(self, result: Result, body: Body, operands: Operands = None) -> Result:
        """What a body calls a value: its own, a result of a call in it, or one that it takes."""
        home: Body | None = self.homes.get(result.node)
        path = []
        while home is not None and home is not body:
            path.append(home)
            home = home.outer
        if home is None:
            assert operands is not None, f"{result} is not there"
            return Result(f"{VALUE}{operands.setdefault(result, len(operands))}")
        found = Result(self.names[self.homes[result.node]][result.node], result.index)
        for each in path:
            line = self.lines[each]
            found = Result(line.name, line.draft.request(found))
        return found


def _captured(scan: ScanNode, graph: Graph) -> dict[str, str]:
    """The arguments of a scan that are called after the value outside, and what they are called by their place."""
    found = {}
    for at, name in enumerate(scan.captured):
        source = graph.inputs(scan.name)[name]
        prefix = captured_name(source)
        if name.rstrip("_") == prefix.rstrip("_") and name.startswith(prefix):
            found[name] = f"{CAPTURED}{at}{name[len(prefix) :]}"
    return found


def captured_name(source: Result) -> str:
    """What a scan's argument is called that is a value from outside."""
    return f"{CAPTURED}{source.node}" + (f".{source.index}" if source.index else "")


def _merged(known: tuple[PlaceLine, ...], more: tuple[PlaceLine, ...]) -> tuple[PlaceLine, ...]:
    names = {each.name for each in known}
    return tuple(sorted((*known, *(each for each in more if each.name not in names)), key=lambda each: each.at))


def _names(graph: Graph) -> Iterator[str]:
    """The names of pools, routers and axes of a graph, in scans too."""
    for part in graph.parts():
        for node in part.graph:
            if not node.types:
                yield node.name
            for type_ in node.types:
                yield from (axis.name for axis in type_.shape)
                yield type_.of
