"""Which weights have an axis of a pool's modules: they grow with the pool, and are turned with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modgraph.ir.graph import Graph
from modgraph.ir.node import PoolNode, RouteNode, RouterNode


@dataclass(frozen=True)
class ModuleAxis:
    """The place of the modules' axis in a router's weight, the router, and the pools that it serves."""

    axis: int
    router: RouterNode
    pools: tuple[PoolNode, ...] = ()

    @property
    def old(self) -> int:
        """How many modules there were before the first was added to any of the pools."""
        return min(pool.size - pool.grown for pool in self.pools)


def module_axes(graph: Graph) -> dict[str, ModuleAxis]:
    """The weights of routers that have one, by name, in scans too."""
    found: dict[str, ModuleAxis] = {}
    for part in graph.parts():
        for route in part.graph.of_kind(RouteNode):
            router, pool = part.graph.router_of(route), part.graph.pool_of(route)
            for weight, axes in part.graph.signature(route).weight_axes().items():
                if pool.axis in axes:
                    name = f"{router.name}.{weight}"
                    known = found.get(name) or ModuleAxis(axes.index(pool.axis), router)
                    found[name] = replace(known, pools=(*known.pools, pool))
    return found
