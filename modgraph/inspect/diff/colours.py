"""What nodes are but for their names: numbers that are equal where nodes are alike (Weisfeiler and Leman's colours).

A node's content is its facts without names and edges. Refined by all that it is made from, `up`, it says what the node
computes; refined by all that is made of it, `down`, what it is for; both together, `context`, its place in the graph.
All are found in one walk over the graph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

from modgraph.inspect.diff.facts import facts_of, names_axes, regions_of
from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.values import Entry

Colours = dict[str, int]
UNNAMED = "inputs lengths uses owner shares inside label regions".split()  # facts that are names, or edges
UNNAMED += "facts rounds records".split()  # those that follow from the text of a router


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
            name: self.palette.number(("content", arguments.get(name), *self._content(entry)))
            for name, entry in self.level.entries.items()
        }

    def _content(self, entry: Entry) -> tuple[Hashable, ...]:
        regions = tuple(region_colour(Level.of_region(each), self.palette) for each in regions_of(entry))
        facts = {key: _unnamed(key, value, entry) for key, value in facts_of(entry).items()}
        named = {key: value for key, value in facts.items() if key.partition(".")[0] not in UNNAMED}
        return json.dumps(named, sort_keys=True), "shares" in entry, regions

    @cached_property
    def up(self) -> Colours:
        found: Colours = {}
        for name in self.level.entries:
            sources = [(edge.relation, edge.slot, edge.index, found[edge.node]) for edge in self.level.sources[name]]
            found[name] = self.palette.number(("up", self.content[name], *sorted(sources)))
        return found

    @cached_property
    def down(self) -> Colours:
        return self._down("down", self.content)

    @cached_property
    def context(self) -> Colours:
        return self._down("context", self.up)

    def _down(self, what: str, own: Colours) -> Colours:
        results: dict[str, list[tuple[int, int]]] = {}
        for at, (name, index) in enumerate(self.level.results):
            results.setdefault(name, []).append((at, index))
        found: Colours = {}
        for name in reversed([*self.level.entries]):
            users = sorted((edge.relation, edge.slot, edge.index, found[edge.node]) for edge in self.level.users[name])
            found[name] = self.palette.number((what, own[name], tuple(results.get(name, ())), *users))
        return found

    def near(self, names: Iterable[str], own: Mapping[str, int], rounds: int) -> Colours:
        """Colours of some nodes, their own refined by those around them, so many edges far."""
        found = {name: own[name] for name in names}
        for _ in range(rounds):
            known = {**own, **found}
            found = {name: self._refined(name, known) for name in found}
        return found

    def _refined(self, name: str, known: Mapping[str, int]) -> int:
        sources = [(edge.relation, edge.slot, edge.index, known[edge.node]) for edge in self.level.sources[name]]
        users = [(edge.relation, edge.slot, edge.index, known[edge.node]) for edge in self.level.users[name]]
        return self.palette.number(("near", known[name], tuple(sorted(sources)), tuple(sorted(users))))


def region_colour(region: Level, palette: Palette) -> int:
    """What a region is but for names."""
    colours = Coloured(region, palette).context
    results = tuple((colours[name], index) for name, index in region.results)
    arguments = tuple(colours[name] for name in region.arguments)
    return palette.number(("region", arguments, results, *sorted(colours.values())))


def _unnamed(key: str, value: Any, entry: Entry) -> Any:
    """A fact without the names of axes."""
    head, _, rest = key.partition(".")
    if head == "types":
        shape = [_without_name(axis) for axis in value["shape"]]
        return {**value, "shape": shape, **({"of": "*"} if "of" in value else {})}
    if head == "settings" and names_axes(entry["kind"], entry["is"], rest):
        return _starred(value)
    return value


def _without_name(axis: Any) -> Any:
    return {**axis, "name": "*"} if isinstance(axis, dict) else "*" if isinstance(axis, str) else axis


def _starred(value: Any) -> Any:
    unlisted: Callable[[Any], Any] = _starred
    return [*map(unlisted, value)] if isinstance(value, list) else "*" if isinstance(value, str) else value
