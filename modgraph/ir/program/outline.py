"""From a graph to its author's program: groups the nodes of a call into a definition, and shares equal definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.frozen import replace_fields
from modgraph.ir.graph import Graph, compute_once
from modgraph.ir.node import Call, Node, PoolNode, Result, ScanNode
from modgraph.ir.part import Region
from modgraph.ir.program.drafts import VALUE, Draft, Drafts, Line, Lines, fill
from modgraph.ir.program.program import CallNode, Program
from modgraph.ir.program.relative import OUTER, SELF, CallLevel, Level, RegionLevel, make_relative, rename_axes
from modgraph.ir.tree import Body, Placed, body_of

CAPTURED = "outer."

Operands = dict[Result, int] | None  # the values that a definition takes so far; None for the model and for regions


@compute_once
def outline(graph: Graph) -> Program:
    """Outline a graph as a program. `flatten` gives the graph again, except for the order of its nodes."""
    drafts = Drafts(_names(graph))
    lines = _Outline(graph, None, Level(), drafts).lines
    for draft in drafts.known.values():
        fill(draft.definition.graph, draft.lines, draft.name)
    body = fill(Graph(graph.name, graph.parameters), lines, lambda name: name)
    return Program(body, tuple(draft.definition for draft in drafts.known.values()), drafts.weights)


@compute_once
def number_definitions(graph: Graph) -> dict[Call, int]:
    """Number the calls of a graph, in regions too. Calls of one definition with the same marks have one number."""
    drafts = Drafts(_names(graph))
    _Outline(graph, None, Level(), drafts)
    return drafts.kinds


class _Outline:
    """Outlines one graph into `lines`: the model, or a region.

    `captured` has the values outside that some arguments of a region are named after. `pool` is the place of the marks
    of its nodes.
    """

    def __init__(
        self,
        graph: Graph,
        base: Call | None,
        level: Level,
        drafts: Drafts,
        pool: str = "",
        captured: Mapping[str, str] | None = None,
    ) -> None:
        self.graph, self.drafts, self.pool, self.captured = graph, drafts, pool, captured or {}
        self.names: dict[str, str] = {}  # the names of nodes in their bodies
        self.calls: dict[Body, tuple[str, Draft]] = {}
        root = body_of(graph, base)
        self.homes = dict(_homes(root))
        self.lines = self._lines(root, level, None)
        self.read = lambda result: self._read(result, root, None)

    def _lines(self, body: Body, level: Level, operands: Operands) -> Lines:
        nodes = [item.name for item in body.items if isinstance(item, Node)]
        used = {*map(level.node, nodes), *map(level.weights, nodes)}
        lines, placed = list[Line](), dict[str, int]()
        for item in body.items:
            match item:
                case Placed():
                    placed[item.node.name] = len(lines)
                case Body():
                    lines.append(self._call(item, body, level, operands, used))
                case _:
                    lines.append(self._line(item, body, level, operands))
        places = {level.owner(name): at for name, at in placed.items()}
        return Lines(tuple(lines), places, tuple(map(level.owner, body.deferred)))

    def _line(self, node: Node, body: Body, level: Level, operands: Operands) -> Line:
        said = make_relative(node, level)
        said = replace_fields(said, name=self.captured.get(node.name) or said.name)
        self.names[node.name] = said.name
        inputs = {slot: self._read(each, body, operands) for slot, each in self.graph.inputs(node.name).items()}
        regions: tuple[Lines, ...] = ()
        if isinstance(node, PoolNode):
            inside, place = RegionLevel(level, self.drafts.names), f"{self.pool}{node.name}"
            places = ((each, f"{place}/{at}/") for at, each in enumerate(node.regions))
            regions = tuple(self._region(each, None, inside, below, {}) for each, below in places)
        if isinstance(node, ScanNode):
            captured = dict[str, str]()  # arguments named after the value outside have the name of its place
            for at, name in enumerate(node.captured):
                prefix = name_captured(self.graph.inputs(node.name)[name])
                if name.rstrip("_") == prefix.rstrip("_") and name.startswith(prefix):
                    captured[name] = f"{CAPTURED}{at}{name[len(prefix) :]}"
            regions = (self._region(node.region, node.within, level, self.pool, captured),)
            inputs = {captured.get(slot) or level.node(slot): each for slot, each in inputs.items()}
        uses = {role: level.owner(name) for role, name in self.graph.uses(node.name).items()}
        return Line(said, inputs, uses, regions, self.pool + node.name)

    def _region(self, region: Region, base: Call | None, level: Level, pool: str, captured: Mapping[str, str]) -> Lines:
        inner = _Outline(region.graph, base, level, self.drafts, pool, captured)
        arguments = tuple(captured.get(name) or level.node(name) for name in region.arguments)
        return replace_fields(inner.lines, arguments=arguments, results=tuple(map(inner.read, region.results)))

    def _call(self, body: Body, outer: Body, level: Level, operands: Operands, used: set[str]) -> Line:
        call = body.call
        assert call is not None
        inside, taken = CallLevel(call, level), dict[Result, int]()
        lines = self._lines(body, inside, taken)
        types = [rename_axes(self.graph.type_of(each), inside.owner) for each in taken]
        draft = self.drafts.intern(Draft(call, lines, inside, types, [*map(self._word, taken)]))
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
        return Line(node, dict(zip(draft.definition.operands, given, strict=True)), call=call)

    def _word(self, result: Result) -> str:
        """Return the author's name of a value: the first word of its node's name in its body."""
        name, call = self.names[result.node], self.homes[result.node].call
        return call.definition if name == SELF and call else name.lstrip(OUTER).partition(".")[0]

    def _read(self, result: Result, body: Body, operands: Operands) -> Result:
        """Return a body's name for a value: its own, a result of a call in it, or one that it takes."""
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
    for item in body.items:
        if isinstance(item, Body):
            yield from _homes(item)
        elif isinstance(item, Node):
            yield item.name, body


def name_captured(source: Result) -> str:
    """Name the argument of a scan after the captured value."""
    return f"{CAPTURED}{source.node}" + (f".{source.index}" if source.index else "")


def _names(graph: Graph) -> Iterator[str]:
    """List the names of the pools, routers and axes of a graph, in scans too."""
    for node in (node for part in graph.parts() for node in part.graph):
        if not node.types:
            yield node.name
        for type_ in node.types:
            yield from (each for axis in (*type_.shape, *type_.ends) for each in (axis.name, axis.of))
            yield type_.of
