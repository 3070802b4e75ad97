"""What becomes of trained weights where one graph takes the place of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from modgraph.inspect.diff.facts import Names
from modgraph.inspect.diff.places import WEIGHTS, lies_below, name_in, owners_after
from modgraph.inspect.diff.values import Diff
from modgraph.ir import Graph, GraphWeight, OpNode, PoolNode, RouterNode, weights_of

IDENTITY = ("is", "text")  # what an op or a router is


class Fate(StrEnum):
    """What becomes of a weight: it is kept under its name or another, some of its axes have other lengths, it is new,
    or nothing takes it over."""

    KEPT = "kept"
    MOVED = "moved"
    RESHAPED = "reshaped"
    NEW = "new"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Weight:
    """One weight before and after; None where it is not there."""

    before: GraphWeight | None
    after: GraphWeight | None

    @property
    def fate(self) -> Fate:
        if self.before is None or self.after is None:
            return Fate.NEW if self.before is None else Fate.DROPPED
        if self.before.shape != self.after.shape:
            return Fate.RESHAPED
        return Fate.KEPT if self.before.name == self.after.name else Fate.MOVED

    @property
    def name(self) -> str:
        """Its name after, or before where it is gone."""
        return next(each.name for each in (self.after, self.before) if each is not None)

    @property
    def count(self) -> int:
        """How many values it has, after where it is there."""
        return next(each.count for each in (self.after, self.before) if each is not None)


def weights_after(diff: Diff, before: Graph, after: Graph) -> list[Weight]:
    """Every weight of both graphs, in the order of the one before, then what is new."""
    names = _Names(diff, before)
    new = {weight.name: weight for weight in weights_of(after)}
    found = []
    for weight in weights_of(before):
        name = names.after(weight)
        fits = name in new and len(new[name].axes) == len(weight.axes)
        found.append(Weight(weight, new.pop(name) if name is not None and fits else None))
    return [*found, *(Weight(None, weight) for weight in new.values())]


def _scopes(graph: Graph) -> Iterator[tuple[str, str]]:
    """What owners of weights begin with in each level of a graph: in modules of pools names are their own."""
    for part in graph.parts():
        level = f"{part.scan.name}/0/" if part.scan else ""
        yield level, ""
        yield from ((place, place) for place in _modules(part.graph, level))


def _modules(graph: Graph, level: str) -> Iterator[str]:
    """The places of pools' modules in a graph, those of pools inside pools too."""
    for pool in graph.of_kind(PoolNode):
        for at, region in enumerate(pool.regions):
            place = f"{level}{pool.name}/{at}/"
            yield place
            yield from _modules(region.graph, place)


class _Names:
    """What weights are called after, by what nodes are."""

    def __init__(self, diff: Diff, before: Graph) -> None:
        others = {change.before for change in diff.changed for each in change.attributes if each.name in IDENTITY}
        self.removed = {each.place for each in diff.removed} | others  # weights of another op mean something else
        self.gone = frozenset(place.rpartition("/")[2] for place in self.removed)
        self.moved = {each.before: name_in(each.after) for each in diff.moved if each.kind != WEIGHTS}
        self.owners = owners_after(diff.moved, dict(_scopes(before)))
        self.found: dict[str, str] = {}
        for part in before.parts():
            self._take(part.graph, f"{part.scan.name}/0/" if part.scan else "")

    def after(self, weight: GraphWeight) -> str | None:
        """The new name, or None where the nodes that use it are gone."""
        parts = weight.name.split(".")
        heads = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        head = next((head for head in heads if head in self.found), None)  # no owner lies below another
        return None if head is None else self.found[head] + weight.name[len(head) :]

    def _take(self, graph: Graph, level: str) -> None:
        self.found |= self._owners(graph, level, "")
        for node in graph:
            place = level + node.name
            if place in self.removed:
                continue
            if isinstance(node, RouterNode):
                self.found[node.name] = self.moved.get(place, node.name)
            if isinstance(node, PoolNode):
                self.found |= dict(self._of_pool(node, place))

    def _owners(self, graph: Graph, level: str, scope: str) -> Names:
        """The owners of weights that ops of a level use, and what they have become."""
        after = self.owners[scope]
        there = [node for node in graph.of_kind(OpNode) if level + node.name not in self.removed]
        used = (node.owner for node in there if scope or not lies_below(node.owner, self.gone))
        return {owner: after.get(owner, owner) for owner in used}

    def _in_module(self, graph: Graph, level: str) -> Names:
        """The owners of weights in a module, and what they have become."""
        inner = (each for each in graph.of_kind(PoolNode) if level + each.name not in self.removed)
        names = {old: new for pool in inner for old, new in self._of_pool(pool, level + pool.name)}
        return {**self._owners(graph, level, level), **names}

    def _of_pool(self, pool: PoolNode, place: str) -> Iterator[tuple[str, str]]:
        name = self.moved.get(place, pool.name)
        regions = [self._in_module(each.graph, f"{place}/{at}/") for at, each in enumerate(pool.regions)]
        for module in [*range(pool.size), *(["shared"] if pool.alike else [])]:
            owners = regions[0 if pool.alike else int(module)]
            yield from ((f"{pool.name}.{module}.{old}", f"{name}.{module}.{new}") for old, new in owners.items())
