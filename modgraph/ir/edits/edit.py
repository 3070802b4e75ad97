"""Edits of a graph as values: what a training does to its model while it goes on, logged, replayed and inverted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from modgraph.ir.edits.grow import grow, growing_axis, grown_along
from modgraph.ir.edits.marks import added, frozen_places, marked
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph
from modgraph.ir.stored.fields import Fields, list_of, name_of, whole_of


@dataclass(frozen=True)
class Edit:
    """A change of a graph. Its inverse leads back to the same graph, to the hash."""

    kind: ClassVar[str]

    def apply(self, graph: Graph) -> Graph:
        """The graph with the edit. Raises `Misfit` or `KeyError` where it cannot be made."""
        raise NotImplementedError

    def invert(self, before: Graph) -> tuple[Edit, ...]:
        """What leads back to the graph that the edit is applied to."""
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class _Resize(Edit):
    """An axis gets longer, or shorter, by some places at its end."""

    sign: ClassVar[int]
    axis: str
    by: int = 1

    def apply(self, graph: Graph) -> Graph:
        return grow(graph, self.axis, self.sign * self.by)

    def __str__(self) -> str:
        return f"{self.kind} {self.axis} by {self.by}"

    def as_json(self) -> dict[str, Any]:
        return {"edit": self.kind, "axis": self.axis, "by": self.by}


@dataclass(frozen=True)
class Grow(_Resize):
    """An axis gets `by` places more: a module for each pool along it, a place in each weight and state."""

    kind = "grow"
    sign = 1

    def invert(self, before: Graph) -> tuple[Edit, ...]:
        return (Shrink(self.axis, self.by),)


@dataclass(frozen=True)
class Shrink(_Resize):
    """An axis loses its last places: what undoes that it grew."""

    kind = "shrink"
    sign = -1

    def invert(self, before: Graph) -> tuple[Edit, ...]:
        again = Grow(self.axis, self.by)
        if grown_along(before, growing_axis(before, self.axis)) >= self.by:
            return (again,)
        return again, Mark.of(before)


@dataclass(frozen=True)
class Freeze(Edit):
    """All that is learned stays as it is from here on, and nothing counts as added; but for weights whose names are
    those of `but`, where `*` stands for any letters, and what was added to the pools and targets in `keeps`."""

    kind = "freeze"
    but: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()

    def apply(self, graph: Graph) -> Graph:
        kept = {name: count for name, count in added(graph).items() if name in self.keeps}
        before = frozen_places(graph)  # which no pattern makes learn again
        return marked(graph, lambda place, names: place in before or not self._spares(names), kept)

    def _spares(self, names: Iterable[str]) -> bool:
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.but)

    def invert(self, before: Graph) -> tuple[Edit, ...]:
        return (Mark.of(before),)

    def __str__(self) -> str:
        spared = [*self.but, *(f"what was added to {name}" for name in self.keeps)]
        return f"freeze all but {', '.join(spared)}" if spared else "freeze all"

    def as_json(self) -> dict[str, Any]:
        return {"edit": self.kind, "but": [*self.but], "keeps": [*self.keeps]}


@dataclass(frozen=True)
class Mark(Edit):
    """Exactly these nodes are frozen, and so many places count as added: what undoes a freeze. A node of a pool's
    module is called `pool/0/linear`."""

    kind = "mark"
    frozen: frozenset[str] = frozenset()
    grown: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, graph: Graph) -> Mark:
        """What is frozen in a graph, and counts as added."""
        return cls(frozen_places(graph), tuple(sorted(added(graph).items())))

    def apply(self, graph: Graph) -> Graph:
        return marked(graph, lambda place, names: place in self.frozen, dict(self.grown))

    def invert(self, before: Graph) -> tuple[Edit, ...]:
        return (Mark.of(before),)

    def __str__(self) -> str:
        return f"mark {len(self.frozen)} nodes as frozen"

    def as_json(self) -> dict[str, Any]:
        return {"edit": self.kind, "frozen": sorted(self.frozen), "grown": dict(self.grown)}


def replayed(graph: Graph, edits: Iterable[Edit]) -> Graph:
    """A graph after some edits, in their order."""
    for edit in edits:
        graph = edit.apply(graph)
    return graph


# ---------------------------------------------------------------- stored


def edit_from_json(record: Any) -> Edit:
    """The edit that `as_json` wrote. Raises `InvalidGraph` for anything else."""
    fields = Fields(record)
    kind = fields.read("edit", str)
    if kind not in READERS:
        raise InvalidGraph(f'"{kind}" is no edit of a graph', field="edit")
    edit = READERS[kind](fields)
    fields.close()
    return edit


def _sized(kind: Callable[[str, int], Edit]) -> Callable[[Fields], Edit]:
    return lambda fields: kind(fields.read("axis", name_of), fields.read("by", whole_of(1, 2**31)))


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, list_of(value)))


def _counts(value: Any) -> tuple[tuple[str, int], ...]:
    counts = Fields(value)
    return tuple((name, counts.read(name, whole_of(1, 2**31))) for name in sorted(value))


READERS: dict[str, Callable[[Fields], Edit]] = {
    Grow.kind: _sized(Grow),
    Shrink.kind: _sized(Shrink),
    Freeze.kind: lambda fields: Freeze(fields.read("but", _texts), fields.read("keeps", _texts)),
    Mark.kind: lambda fields: Mark(frozenset(fields.read("frozen", _texts)), fields.read("grown", _counts)),
}
