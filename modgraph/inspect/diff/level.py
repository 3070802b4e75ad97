"""One graph of a model for comparison: the whole, or the region of a pool's module or of a scan's step.

Colours are numbers that are equal for nodes that differ only in names (Weisfeiler and Leman). `content` describes a
node without names and edges. `up` refines it by all that the node reads, and so describes what it computes. `context`
refines `up` by all that reads the node, and so describes its place in the graph. Each takes one walk.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import NamedTuple

from modgraph.ir import DecisionNode, Graph, InputNode, Node, Result, ScanNode, regions_of, rename

Colours = dict[str, int]
Palette = dict[Hashable, int]  # numbers of keys, in the order in which they occur in both graphs

NAMED = {"name", "owner", "label", "shares", "inside", "regions", "region", "span", "within"}
OF_A_TEXT = {"records", "rounds", "facts"}  # of a decision: these follow from its router's text


class Edge(NamedTuple):
    """A source of a node: the relation, the slot, the node, and the index of its result."""

    relation: str
    slot: str
    node: str
    result: int = 0


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one graph; a region has arguments and results too.

    `place` begins the places of its nodes, `scope` those of owners of weights: names in a module of a pool are its own,
    all others belong to the model.
    """

    graph: Graph
    place: str = ""
    scope: str = ""
    arguments: Sequence[str] = ()
    results: Sequence[Result] = ()
    palette: Palette = field(default_factory=dict)

    def inner(self, node: Node) -> list[Level]:
        """The regions of a node of this level."""
        found = []
        for at, region in enumerate(regions_of(node)):
            place = f"{self.place}{node.name}/{at}/"
            scope = self.scope if isinstance(node, ScanNode) else place
            found.append(Level(region.graph, place, scope, region.arguments, region.results, self.palette))
        return found

    def walk(self) -> Iterator[Level]:
        """This level and all below it."""
        yield self
        for node in self.graph:
            for level in self.inner(node):
                yield from level.walk()

    @cached_property
    def sources(self) -> dict[str, list[Edge]]:
        """What each node reads, sources first. Slots of scans and lengths may be renamed, so their position
        identifies them."""
        found = {}
        # An input of lengths may stand after nodes that read it.
        for node in sorted(self.graph, key=lambda node: not isinstance(node, InputNode)):
            arguments = node.region.arguments if isinstance(node, ScanNode) else ()
            slots = {name: str(at) for at, name in enumerate(arguments)}
            inputs, lengths = self.graph.inputs(node.name), self.graph.lengths(node.name)
            found[node.name] = [
                *(Edge("inputs", slots.get(slot, slot), each.node, each.index) for slot, each in inputs.items()),
                *(Edge("lengths", "", each.node, each.index) for each in lengths.values()),
                *(Edge("uses", role, used) for role, used in self.graph.uses(node.name).items()),
            ]
        return found

    @cached_property
    def users(self) -> dict[str, list[Edge]]:
        """The edges to each node, as the reader has them; `node` is the reader."""
        found: dict[str, list[Edge]] = {name: [] for name in self.sources}
        for name, edges in self.sources.items():
            for edge in edges:
                found[edge.node].append(Edge(edge.relation, edge.slot, name, edge.result))
        return found

    # ------------------------------------------------------------ colours

    def _number(self, *key: Hashable) -> int:
        return self.palette.setdefault(key, len(self.palette))

    @cached_property
    def content(self) -> Colours:
        arguments = {name: at for at, name in enumerate(self.arguments)}
        found: Colours = {}
        for node in self.graph:
            plain = rename(node, "", lambda name: "*" if name else "")  # without names of axes either
            left_out = NAMED | OF_A_TEXT if isinstance(node, DecisionNode) else NAMED
            facts = [repr(getattr(plain, each.name)) for each in fields(plain) if each.name not in left_out]
            regions = tuple(inner._colour() for inner in self.inner(node))
            shares = bool(getattr(node, "shares", ""))
            found[node.name] = self._number("content", arguments.get(node.name), node.kind, shares, regions, *facts)
        return found

    @cached_property
    def up(self) -> Colours:
        found: Colours = {}
        for name, edges in self.sources.items():
            found[name] = self._number("up", self.content[name], *_edge_colours(edges, found))
        return found

    @cached_property
    def context(self) -> Colours:
        results: dict[str, list[tuple[int, int]]] = {}
        for at, result in enumerate(self.results):
            results.setdefault(result.node, []).append((at, result.index))
        found: Colours = {}
        for name in reversed([*self.sources]):
            users = _edge_colours(self.users[name], found)
            found[name] = self._number("context", self.up[name], tuple(results.get(name, ())), *users)
        return found

    def _colour(self) -> int:
        """A region without names."""
        results = tuple((self.context[each.node], each.index) for each in self.results)
        arguments = tuple(self.context[name] for name in self.arguments)
        return self._number("region", arguments, results, *sorted(self.context.values()))


def _edge_colours(edges: Iterable[Edge], colours: Mapping[str, int]) -> list[tuple[str, str, int, int]]:
    return sorted((edge.relation, edge.slot, edge.result, colours[edge.node]) for edge in edges)


def split_place(place: str) -> tuple[str, str]:
    """The prefix of the places of a graph, and the name of a node in it."""
    name = place.rpartition("/")[2]
    return place[: len(place) - len(name)], name


def is_below(heads: Container[str], name: str) -> bool:
    """Whether a name lies below one of some others."""
    return any(name[:at] in heads for at, sign in enumerate(name) if sign == ".")
