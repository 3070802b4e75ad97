"""From drafts to a program: definitions get names, and so does what they take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.node import InputNode, Node, OpNode, OutputNode, PoolNode, Result, ScanNode
from modgraph.ir.program.drafts import VALUE, CallLine, Draft, Line, Lines, with_marks
from modgraph.ir.program.program import CallNode, DeferredNode, Definition, PlaceNode, Program
from modgraph.ir.program.relative import TAKEN, rename_axes
from modgraph.ir.program.rename import rename
from modgraph.ir.region import Region

NUMBERED = re.compile(f"[{TAKEN}{VALUE}][0-9]+")


def build(graph: Graph, body: Lines, drafts: Iterable[Draft], weights: Mapping[str, Mapping[str, Any]]) -> Program:
    """The program of some drafts, each after those that it calls."""
    builder = _Builder(graph)
    for draft in drafts:
        builder.define(draft)
    top = builder.graph(Graph(graph.name, graph.parameters), body, {})
    return Program(top, tuple(builder.known.values()), weights)


@dataclass
class _Builder:
    """The definitions so far."""

    source: Graph
    known: dict[Draft, Definition] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def define(self, draft: Draft) -> None:
        call, level = draft.call, draft.level
        name = _unique(call.definition, self.names, numbered=True)
        self.names.add(name)
        names = (line.name if isinstance(line, CallLine) else line.node.name for line in draft.body.lines)
        used = {*level.own, *level.axes, *names}
        words = {f"{TAKEN}{at}": _last_word(taken) for at, taken in enumerate(level.takes)}
        words |= {f"{VALUE}{at}": word for at, word in enumerate(draft.words)}
        given = {}
        for number, word in words.items():
            given[number] = _unique(word, used)
            used.add(given[number])
        graph = Graph(name)
        for at, type_ in enumerate(draft.types):
            graph.add(InputNode(name=given[f"{VALUE}{at}"], types=(rename_axes(type_, _naming(given)),)))
        self.graph(graph, draft.body, given)
        results = tuple(Result(_naming(given)(each.node), each.index) for each in draft.results)
        takes = tuple(given[f"{TAKEN}{at}"] for at in range(len(level.takes)))
        facts: Any = {"takes": takes, "axes": frozenset(level.axes), "members": call.members}
        self.known[draft] = Definition(name, call.kind, call.definition, graph, results, **facts)

    def graph(self, graph: Graph, body: Lines, given: Mapping[str, str]) -> Graph:
        """The nodes of a body, put into a graph."""
        name = _naming(given)
        for number, placed in enumerate(body.deferred):
            graph.add(DeferredNode(name=f"deferred.{number}", placed=name(placed)))
        places = {at: [each.name for each in body.places if each.at == at] for at in {each.at for each in body.places}}
        for at, line in enumerate((*body.lines, None)):
            for number, placed in enumerate(places.get(at, ())):
                graph.add(PlaceNode(name=f"place.{at}.{number}", placed=name(placed)))
            if isinstance(line, CallLine):
                node, inputs = self._call(line, given)
                graph.add(node, inputs)
            elif line is not None:
                inputs = {name(slot): _result(each, given) for slot, each in line.inputs.items()}
                uses = {role: name(used) for role, used in line.uses.items()}
                graph.add(self._node(line, given), inputs, uses)
        return graph

    def _call(self, line: CallLine, given: Mapping[str, str]) -> tuple[CallNode, dict[str, Result]]:
        definition, name = self.known[line.draft], _naming(given)
        facts: Any = {"weights": name(line.weights), "key": line.call.key, "names": tuple(map(name, line.names))}
        node = CallNode(name=name(line.name), definition=definition, span=line.call.span, **facts)
        inputs = {slot: _result(each, given) for slot, each in zip(definition.operands, line.operands, strict=True)}
        return replace(node, types=node.yields()), inputs

    def _node(self, line: Line, given: Mapping[str, str]) -> Node:
        name = _naming(given)
        node = with_marks(rename(line.node, name(line.node.name), name), line.marks)
        regions = tuple(self._region(each, given) for each in line.regions)
        match node:
            case OpNode():
                return replace(node, owner=name(node.owner))
            case OutputNode():
                return replace(node, label=name(node.label))
            case PoolNode():
                return replace(node, regions=regions)
            case ScanNode():
                return replace(node, region=regions[0])
            case _:
                return node

    def _region(self, lines: Lines, given: Mapping[str, str]) -> Region:
        graph, name = self.graph(Graph(""), lines, given), _naming(given)
        results = tuple(_result(each, given) for each in lines.results)
        return Region(graph, tuple(map(name, lines.arguments)), results)


def _naming(given: Mapping[str, str]) -> Any:
    return lambda name: NUMBERED.sub(lambda found: given[found[0]], name)


def _result(result: Result, given: Mapping[str, str]) -> Result:
    return Result(_naming(given)(result.node), result.index)


def _unique(word: str, used: set[str], numbered: bool = False) -> str:
    """A word that is not used yet."""
    found, count = word, 1
    while found in used:
        count += 1
        found = f"{word}{count}" if numbered else f"{found}_"
    return found


def _last_word(name: str) -> str:
    """What the author calls a pool, a router or an axis: without the path and the key of a member."""
    words = [word for word in name.split(".") if not word.isdecimal()]
    return words[-1] if words else name
