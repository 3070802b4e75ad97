"""What each box costs: the counts of a graph, each given to one box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from modgraph.inspect.cost import COUNTS, Cost
from modgraph.ir import PoolNode


def own_counts(cost: Cost) -> dict[str, Cost]:
    """What stands under each name itself: the subtotals, less those right below."""
    below: dict[str, Cost] = {}
    for name, each in cost.nodes.items():
        parent, dot, _ = name.rpartition(".")
        if dot:
            below[parent] = below.get(parent, Cost()) + each
    return {name: less(each, below.get(name, Cost())) for name, each in cost.nodes.items()}


def less(cost: Cost, other: Cost) -> Cost:
    return Cost(*(getattr(cost, name) - getattr(other, name) for name in COUNTS))


def of_pool(pool: PoolNode, own: Mapping[str, Cost]) -> Cost:
    """The counts of a pool's modules, of what they share, and of all messages."""
    names = (pool.name, f"{pool.name}.shared", *(f"{pool.name}.{module}" for module in range(pool.size)))
    return total(own.get(name, Cost()) for name in names)


def total(costs: Iterable[Cost]) -> Cost:
    return sum(costs, Cost())
