"""One graph of a model as it is compared: the whole, or the region of a pool's module or of a scan's step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from modgraph.inspect.diff.values import Entry


@dataclass(frozen=True, order=True)
class Edge:
    """What a node reads: by which relation, in which slot, of which node, and which of its results."""

    relation: str
    slot: str
    node: str
    index: int = 0


@dataclass(frozen=True)
class Level:
    """The nodes of one graph by name, sources first; of a region its arguments and results too."""

    entries: Mapping[str, Entry]
    arguments: Sequence[str] = ()
    results: Sequence[Any] = ()
    sources: dict[str, list[Edge]] = field(init=False)

    def __post_init__(self) -> None:
        found = {name: [*_sources(entry)] for name, entry in self.entries.items()}
        object.__setattr__(self, "sources", found)

    @classmethod
    def of(cls, nodes: Sequence[Entry]) -> Level:
        return cls({entry["name"]: entry for entry in nodes})

    @classmethod
    def of_region(cls, region: Mapping[str, Any]) -> Level:
        nodes = {entry["name"]: entry for entry in region["nodes"]}
        return cls(nodes, region["arguments"], region["results"])

    @cached_property
    def users(self) -> dict[str, list[Edge]]:
        """What reads each node: the edges as those of the reader, `node` being the reader."""
        found: dict[str, list[Edge]] = {name: [] for name in self.entries}
        for name, edges in self.sources.items():
            for edge in edges:
                found[edge.node].append(Edge(edge.relation, edge.slot, name, edge.index))
        return found

    @cached_property
    def users_of_owners(self) -> dict[str, list[str]]:
        """The ops that use weights, by the name of their owner."""
        found: dict[str, list[str]] = {}
        for name, entry in self.entries.items():
            if entry["kind"] == "op":
                found.setdefault(str(entry.get("owner", name)), []).append(name)
        return found

    @property
    def pools(self) -> list[str]:
        return [name for name, entry in self.entries.items() if entry["kind"] == "pool"]


def _sources(entry: Entry) -> Iterator[Edge]:
    """Slots of a scan and lengths have names that may change: they are known by their place."""
    by_place = entry["kind"] == "scan"
    places = {name: str(at) for at, name in enumerate(entry["region"]["arguments"])} if by_place else {}
    for slot, node, index in entry.get("inputs", ()):
        yield Edge("inputs", places.get(slot, slot), node, index)
    for _, node, index in entry.get("lengths", ()):
        yield Edge("lengths", "", node, index)
    for role, node in entry.get("uses", {}).items():
        yield Edge("uses", role, node)
