"""The edit that a diff describes, applied to a graph."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any

from modgraph.inspect.diff.facts import Facts, Names, Renames, entry_of, facts_of, regions_of
from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.places import AXIS, WEIGHTS, axes_after, level_of, name_in, owners_after, scopes_of
from modgraph.inspect.diff.values import Attribute, Diff, Entry
from modgraph.ir import Graph, flat_from_json, flat_to_json


def applied(diff: Diff, before: Graph) -> Graph:
    """The graph that a diff leads to from the one it was made of."""
    record = flat_to_json(before)
    parameters = {**record["parameters"]}
    for each in diff.model:
        head, _, name = each.name.partition(".")
        _put(parameters if head == "parameters" else record, name or head, each.after)
    edit = _Edit(diff, scopes_of(record["nodes"]))
    return flat_from_json({**record, "parameters": parameters, "nodes": edit.nodes(record["nodes"], "", "")})


class _Edit:
    """A diff, with what it says at hand by place."""

    def __init__(self, diff: Diff, scopes: Mapping[str, str]) -> None:
        self.scopes = scopes
        self.removed = {each.place for each in diff.removed}
        self.changed = {each.before: each.attributes for each in diff.changed}
        self.moved = {each.before: name_in(each.after) for each in diff.moved if each.kind not in (WEIGHTS, AXIS)}
        self.owners = owners_after(diff.moved, scopes)
        self.axes = axes_after(diff.moved)
        self.added: dict[str, list[Entry]] = {}
        for each in diff.added:
            self.added.setdefault(level_of(each.place), []).append(each.entry)

    def nodes(self, entries: list[Entry], before: str, after: str) -> list[Entry]:
        """The nodes of a level, sources first."""
        names = self._names(before, entries)
        kept = [self._node(each, before, after, names) for each in entries if before + each["name"] not in self.removed]
        level = Level.of([*kept, *self.added.get(after, [])])
        order = TopologicalSorter({name: [edge.node for edge in edges] for name, edges in level.sources.items()})
        return [level.entries[name] for name in order.static_order()]

    def _names(self, level: str, entries: list[Entry]) -> Names:
        places = {entry["name"]: level + entry["name"] for entry in entries}
        return {name: self.moved[place] for name, place in places.items() if place in self.moved}

    def _node(self, entry: Entry, before: str, after: str, names: Names) -> Entry:
        place, name = before + entry["name"], names.get(entry["name"], entry["name"])
        attributes = self.changed.get(place, ())
        shared = regions_of(entry)[: len(regions_of(entry)) - _dropped(attributes)]
        nodes = {
            at: self.nodes(region["nodes"], f"{place}/{at}/", f"{after}{name}/{at}/")
            for at, region in enumerate(shared)
        }
        inner = {at: self._names(f"{place}/{at}/", region["nodes"]) for at, region in enumerate(shared)}
        facts = Renames(names, self.owners[self.scopes[before]], self.axes, inner).of(facts_of(entry, len(shared)))
        for each in attributes:
            _put(facts, each.name, each.after)
        return entry_of(name, _in_order(facts), nodes)


def _dropped(attributes: tuple[Attribute, ...]) -> int:
    """How many regions a node loses."""
    return sum(each.name.startswith("regions.") and each.after is None for each in attributes)


def _put(record: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        record.pop(name, None)
    else:
        record[name] = value


def _in_order(facts: Facts) -> Facts:
    return dict(sorted(facts.items()))
