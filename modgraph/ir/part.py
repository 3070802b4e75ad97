"""One graph of a model: the whole, the step of a scan, a module of a pool; and what routers may know in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modgraph.declare import Signature
from modgraph.ir.decision import Decision
from modgraph.ir.node import DecisionNode, OpNode, PoolNode, Result, RouteNode, ScanNode
from modgraph.routers import PoolFacts, PoolTypes, Router
from modgraph.types import TensorType

if TYPE_CHECKING:
    from modgraph.ir.graph import Graph


@dataclass(frozen=True)
class Part:
    """A graph, and the scan it is the region of, if it is one; `place` is what the places of its nodes begin with, in a
    module of a pool: `pool/0/`."""

    graph: Graph
    scan: ScanNode | None = None
    place: str = ""

    def outside(self, inside: Result) -> Result:
        """Where a value is to be had outside: one that a scan stacks is a result of the scan."""
        return inside if self.scan is None else Result(self.scan.name, self.scan.stacked.index(inside))

    def decisions(self, router: str | None = None) -> list[Decision]:
        """What routers decide in this very graph, or one router alone."""
        nodes = self.graph if router is None else self.graph.users_of(router)
        return [Decision(self, node) for node in nodes if isinstance(node, RouteNode | DecisionNode)]

    def facts_of(self, route: RouteNode) -> PoolFacts:
        """What a router may know of the pool of a route."""
        return facts_of(self.graph.pool_of(route), in_scan=self.scan is not None)


def bind_route(router: Router, pool: PoolNode, tokens: TensorType, *others: TensorType) -> Signature:
    """A router bound to a pool and to what it routes. Raises `Misfit`."""
    types = PoolTypes(pool.name, pool.axis, pool.message, pool.result, pool.over_batch)
    return router.bind_pool(types, tokens, *others)


def facts_of(pool: PoolNode, in_scan: bool = False) -> PoolFacts:
    """What a router may know of a pool."""
    ops = [node.op for region in pool.regions for node in region.graph.of_kind(OpNode)]
    plain = not pool.has_pools
    return PoolFacts(
        size=pool.size,
        affine=plain and all(op.affine for op in ops),
        axis=pool.axis.name,
        gathers=plain and pool.alike and all(op.gathers or not op.all_weights() for op in ops),
        weights=_weights(pool.region(0).graph),
        in_scan=in_scan,
        over_batch=pool.over_batch,
    )


def _weights(region: Graph) -> int:
    """How many weights one module has."""
    nodes: list[OpNode | RouteNode] = [*region.of_kind(OpNode), *region.of_kind(RouteNode)]
    shapes = [shape for node in nodes for shape in region.signature(node).weight_shapes.values()]
    inner = sum(_weights(pool.region(at).graph) for pool in region.of_kind(PoolNode) for at in range(pool.size))
    return sum(map(math.prod, shapes)) + inner
