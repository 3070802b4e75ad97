"""Which weights have an axis of a pool's modules: they grow with the pool, and are turned with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.ir.graph import Graph, Part
from modgraph.ir.node import OpNode, PoolNode, RouteNode
from modgraph.ir.weights import below
from modgraph.types import Shape


@dataclass(frozen=True)
class ModuleAxis:
    """The place of the modules' axis in the weight of a router or an op, what it is called, and the pools along it."""

    axis: int
    name: str
    pools: tuple[PoolNode, ...]

    @property
    def old(self) -> int:
        """How many modules there were before the first was added to any of the pools."""
        return min(pool.size - pool.grown for pool in self.pools)

    @property
    def grown(self) -> int:
        """How many were added since."""
        return max(pool.grown for pool in self.pools)


def module_axes(graph: Graph) -> dict[str, ModuleAxis]:
    """The weights that have one, by name, in scans too."""
    along: dict[str, tuple[PoolNode, ...]] = {}
    for pool in graph.pools().values():
        along[pool.axis.name] = (*along.get(pool.axis.name, ()), pool)
    return {
        name: ModuleAxis([axis.name for axis in axes].index(modules), modules, along[modules])
        for part in graph.parts()
        for name, axes in _weights(part)
        for modules in [next((axis.name for axis in axes if axis.name in along), "")]
        if modules
    }


def _weights(part: Part) -> Iterator[tuple[str, Shape]]:
    """The weights of ops and routers by name, and their axes."""
    for node in part.graph:
        if isinstance(node, OpNode | RouteNode):
            owner = node.owner if isinstance(node, OpNode) else part.graph.router_of(node).name
            for weight, axes in part.graph.signature(node).weight_axes().items():
                yield below(owner, weight), axes
