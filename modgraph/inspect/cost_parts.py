"""Costs as a tree of parts, calls of one definition counted together: `blocks.0-7` for eight blocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from modgraph.diagnostics import listed
from modgraph.inspect.calls import definitions_of, ranges
from modgraph.inspect.cost import COUNTS, Cost
from modgraph.ir import Graph, PoolNode, RouterNode

Definitions = Mapping[
    str, Hashable
]  # by the path of nodes or weights, what parts beside each other share that are equal


@dataclass(frozen=True)
class Part:
    """A named part of a model, or `count` equal ones as one: its cost is that of all of them together."""

    label: str
    cost: Cost
    parts: tuple[Part, ...] = ()
    count: int = 1

    def times(self, count: int) -> Part:
        """What so many of this cost."""
        cost = Cost(*(count * getattr(self.cost, name) for name in COUNTS))
        return replace(self, cost=cost, parts=tuple(part.times(count) for part in self.parts))


def parts_of(nodes: Mapping[str, Cost], graph: Graph | None = None) -> tuple[Part, ...]:
    """The parts that cost anything, each with those below it. By its graph equal ones are one, and a router has no
    parts. `nodes` has every prefix of a name before the name."""
    definitions = {} if graph is None else dict(_definitions(graph))
    parts = [] if graph is None else graph.parts()
    closed = {router.name for part in parts for router in part.graph.of_kind(RouterNode)}
    below: dict[str, list[str]] = {}
    for name, cost in nodes.items():
        above = name.rpartition(".")[0]
        if (cost.parameters or cost.macs) and above not in closed:
            below.setdefault(above, []).append(name)
    return _below("", below, nodes, definitions)


def _definitions(graph: Graph) -> Iterator[tuple[str, Hashable]]:
    for call, definition in definitions_of(graph).items():
        yield call.path, definition
        yield call.weights, definition
    for pool in graph.pools().values():
        yield from _modules(pool, pool.name)


def _modules(pool: PoolNode, path: str) -> Iterator[tuple[str, Hashable]]:
    for module in range(pool.size):
        region = pool.regions[0 if pool.alike else module]
        yield f"{path}.{module}", id(region)
        for inner in region.graph.of_kind(PoolNode):
            yield from _modules(inner, f"{path}.{module}.{inner.name}")


def _below(
    name: str, below: Mapping[str, list[str]], nodes: Mapping[str, Cost], definitions: Definitions
) -> tuple[Part, ...]:
    """The parts below a name: those of one definition that cost the same, where the first of them stands."""
    equal: dict[object, list[Part]] = {}
    for each in below.get(name, []):
        cost = replace(nodes[each], nodes={})
        part = Part(each.rpartition(".")[2], cost, _below(each, below, nodes, definitions))
        equal.setdefault((definitions[each], *cost.counts.values()) if each in definitions else each, []).append(part)
    return tuple(_joined(_fold(parts)) for parts in equal.values())


def _joined(part: Part) -> Part:
    """A part that only holds another, as one: `y` with `linear` alone in it is `y.linear`."""
    if len(part.parts) != 1 or part.parts[0].cost != part.cost or 1 not in (part.count, part.parts[0].count):
        return part
    (only,) = part.parts
    return replace(only, label=f"{part.label}.{only.label}", count=part.count * only.count)


def _fold(parts: Sequence[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    labels = [part.label for part in parts]
    label = ranges([*map(int, labels)]) if all(map(str.isdecimal, labels)) else f"{{{listed(labels)}}}"
    return replace(parts[0].times(len(parts)), label=label, count=len(parts))
