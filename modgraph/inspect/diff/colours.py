"""What nodes are but for their names: numbers that are equal where nodes are alike (Weisfeiler and Leman's colours).

A node's content is what it is without names and edges. Refined by all that it is made from, `up`, it says what the node
computes; refined by all that is made of it too, `context`, its place in the graph. Each is found in one walk.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

from modgraph.inspect.diff.level import Edge, Level
from modgraph.ir import DecisionNode, Graph, Node, Region, rename
from modgraph.routers import RouterFacts

Colours = dict[str, int]
EMPTY = Region(Graph(""), (), ())
UNNAMED: dict[str, Any] = {"owner": "", "label": "", "shares": "", "inside": "", "regions": (), "region": EMPTY}
OF_A_TEXT: dict[str, Any] = {"records": (), "rounds": 1, "facts": RouterFacts()}  # these follow from a router's text


class Palette:
    """Numbers for keys, in the order in which they are met: equal keys have one number, in both graphs."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


class Coloured:
    """The colours of one level."""

    def __init__(self, level: Level, palette: Palette) -> None:
        self.level = level
        self.palette = palette

    @cached_property
    def content(self) -> Colours:
        arguments = {name: at for at, name in enumerate(self.level.arguments)}
        return {
            node.name: self.palette.number(("content", arguments.get(node.name), *self._content(node)))
            for node in self.level.graph
        }

    def _content(self, node: Node) -> tuple[Hashable, ...]:
        regions = tuple(_region_colour(each, self.palette) for each in self.level.inner(node))
        return node.kind, repr(_unnamed(node)), bool(getattr(node, "shares", "")), regions

    @cached_property
    def up(self) -> Colours:
        found: Colours = {}
        for name, edges in self.level.sources.items():
            found[name] = self.palette.number(("up", self.content[name], *_coloured(edges, found)))
        return found

    @cached_property
    def context(self) -> Colours:
        results: dict[str, list[tuple[int, int]]] = {}
        for at, result in enumerate(self.level.results):
            results.setdefault(result.node, []).append((at, result.index))
        found: Colours = {}
        for name in reversed([*self.level.sources]):
            users = _coloured(self.level.users[name], found)
            found[name] = self.palette.number(("context", self.up[name], tuple(results.get(name, ())), *users))
        return found


def _coloured(edges: Iterable[Edge], colours: Mapping[str, int]) -> tuple[tuple[str, str, int, int], ...]:
    return tuple(sorted((edge.relation, edge.slot, edge.index, colours[edge.node]) for edge in edges))


def _region_colour(region: Level, palette: Palette) -> int:
    """What a region is but for names."""
    colours = Coloured(region, palette).context
    results = tuple((colours[each.node], each.index) for each in region.results)
    arguments = tuple(colours[name] for name in region.arguments)
    return palette.number(("region", arguments, results, *sorted(colours.values())))


def _unnamed(node: Node) -> Node:
    """A node without names, those of axes too."""
    plain = rename(node, "", lambda name: "*" if name else "")
    known = UNNAMED | (OF_A_TEXT if isinstance(node, DecisionNode) else {})
    blank: dict[str, Any] = {each.name: known[each.name] for each in fields(plain) if each.name in known}
    return replace(plain, **blank)
