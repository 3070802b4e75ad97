"""Costs as a tree of parts, calls of one definition counted together: `blocks.0-7` for eight blocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from modgraph.diagnostics import listed
from modgraph.inspect.cost import Cost
from modgraph.ir import Graph, PoolNode, RouterNode
from modgraph.ir.program.outline import definitions_of


@dataclass(frozen=True)
class Part:
    """A named part of a model, or `count` equal ones as one: its cost is that of all of them together."""

    label: str
    cost: Cost
    parts: tuple[Part, ...] = ()
    count: int = 1

    def times(self, count: int) -> Part:
        """What so many of this cost."""
        return replace(self, cost=self.cost * count, parts=tuple(part.times(count) for part in self.parts))


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

    def parts_below(name: str) -> tuple[Part, ...]:
        """The parts below a name: those of one definition that cost the same, where the first of them stands."""
        equal: dict[object, list[Part]] = {}
        for each in below.get(name, []):
            part = Part(each.rpartition(".")[2], nodes[each], parts_below(each))
            equal.setdefault((definitions[each], nodes[each]) if each in definitions else each, []).append(part)
        return tuple(map(_folded, equal.values()))

    return parts_below("")


def _definitions(graph: Graph) -> Iterator[tuple[str, Hashable]]:
    """What equal parts beside each other share, by the path of nodes or weights."""
    for call, definition in definitions_of(graph).items():
        yield from ((call.path, definition), (call.weights, definition))
    pending = [(pool, pool.name) for pool in graph.pools().values()]
    for pool, path in pending:
        for module in range(pool.size):
            region = pool.region(module)
            yield f"{path}.{module}", id(region)
            pending += ((inner, f"{path}.{module}.{inner.name}") for inner in region.graph.of_kind(PoolNode))


def _folded(parts: list[Part]) -> Part:
    """Equal parts as one; what only holds another as one with it: `y` with `linear` alone in it is `y.linear`."""
    part, labels = parts[0], [part.label for part in parts]
    if len(parts) > 1:
        label = ranges([*map(int, labels)]) if all(map(str.isdecimal, labels)) else f"{{{listed(labels)}}}"
        part = replace(part.times(len(parts)), label=label, count=len(parts))
    if len(part.parts) != 1 or part.parts[0].count > 1 or part.parts[0].cost != part.cost:
        return part
    return replace(part.parts[0], label=f"{part.label}.{part.parts[0].label}", count=part.count)


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: `0-7, 9, 11`, and `1, 3 … 11` for every second one."""
    runs: list[list[int]] = []
    for number in numbers:
        run = runs[-1] if runs else []
        if run and (len(run) == 1 or number - run[-1] == run[1] - run[0]):
            run.append(number)
        else:
            runs.append([number])
    texts = []
    for run in runs:
        if len(run) > 2 and run[1] == run[0] + 1:
            texts.append(f"{run[0]}-{run[-1]}")
        else:
            texts += [f"{run[0]}, {run[1]} … {run[-1]}"] if len(run) > 3 else map(str, run)
    return ", ".join(texts)
