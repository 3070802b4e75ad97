"""What becomes of trained weights where one graph takes the place of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.renames import GONE, Renames, name_in
from modgraph.inspect.diff.values import Diff
from modgraph.ir import Graph, GraphWeight, OpNode, ScanNode, node_weights, weights_of

IDENTITY = {"is", "text"}  # what an op or a router is


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
    names = dict(_names(diff, before))
    new = {weight.name: weight for weight in weights_of(after)}
    found = []
    for weight in weights_of(before):
        name = names.get(weight.name, "")
        fits = name in new and len(new[name].axes) == len(weight.axes)
        found.append(Weight(weight, new.pop(name) if fits else None))
    return [*found, *(Weight(None, weight) for weight in new.values())]


def _names(diff: Diff, before: Graph) -> Iterator[tuple[str, str]]:
    """The names of weights with those that they have after, where any node that uses them is there."""
    levels = [level for level in Level(before).walk() if not level.scope]
    renames = Renames.of(diff.moved, before, _gone(diff, levels))
    for level in levels:
        renamed = renames.graph(level)
        for old, new in zip(level.graph, renamed, strict=True):
            if not isinstance(old, ScanNode):
                both = zip(node_weights(level.graph, old), node_weights(renamed, new), strict=True)
                yield from ((one.name, other.name) for one, other in both if GONE not in other.name)


def _gone(diff: Diff, levels: list[Level]) -> Iterator[tuple[str, str]]:
    """What has no weights after, those of another op or router meaning something else: nodes, and the bodies of
    routers."""
    gone = [(each.kind, each.place) for each in diff.removed]
    gone += [(each.kind, each.before) for each in diff.changed if each.names & IDENTITY]
    yield from gone
    heads = {name_in(place) for _, place in gone}
    for level in levels:
        for node in level.graph.of_kind(OpNode):
            if any(node.owner[:at] in heads for at, sign in enumerate(node.owner) if sign == "."):
                yield node.kind, level.place + node.name
