"""Choose which pools are stored: one tensor for each weight, instead of one for each module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from modgraph.diagnostics import ModgraphError
from modgraph.frozen import change_fields
from modgraph.ir import Graph, Node, OpNode, Part, PoolNode, facts_of, rewrite_graph
from modgraph.ir.analysis.storable import find_obstacle, list_routes_of
from modgraph.passes.errors import CannotStore
from modgraph.passes.infrastructure import Pass
from modgraph.routers import GATHERED, NAMED_MODULES
from modgraph.routers.choice import FEW_WEIGHTS, MANY_IN_BUNDLE

AUTO, STORED, MODULES = "auto", "stored", "modules"
WAYS = (AUTO, STORED, MODULES)
MANY, VERY_MANY = 32, 256  # modules; with fewer than many, a step takes about as long either way
MORE = 4  # times as many weights may a module have where there are very many


@dataclass(frozen=True)
class Store(Pass):
    """Store the pools that are `asked`: those where it pays (`auto`), all (`stored`) or none (`modules`).

    A pool that is partly frozen, and those in `apart`, whose values are reasons, stay as they are. `accelerated` is for
    a device where one product for all modules pays for any pool, `exportable` for a bundle. Raises `ModgraphError` if a
    pool that is asked for cannot be stored.
    """

    name: ClassVar[str] = "store"

    asked: str = AUTO
    exportable: bool = False
    accelerated: bool = False
    apart: tuple[tuple[str, str], ...] = ()

    def __call__(self, graph: Graph) -> Graph:
        if not graph.pools():
            return graph
        outer = {name for name, (stored, _) in self.decide(graph).items() if stored}

        def rule(node: Node, part: Part) -> Node:
            is_pool = isinstance(node, PoolNode) and not node.inside
            return change_fields(node, stored=node.name in outer) if is_pool else node

        return rewrite_graph(graph, rule)

    def decide(self, graph: Graph) -> Mapping[str, tuple[bool, str]]:
        """Whether each pool is stored, and why, by name. Raises `ModgraphError`."""
        obstacles = {name: find_obstacle(pool, graph) for name, pool in graph.pools().items()}
        wrong = [(graph.pools()[name], reason) for name, reason in obstacles.items() if reason]
        if self.asked == STORED and wrong:
            faults = (CannotStore(span=pool.span, pool=pool.name, reason=reason) for pool, reason in wrong)
            raise ModgraphError([*faults])
        return {name: self._decide_one(pool, graph, obstacles[name]) for name, pool in graph.pools().items()}

    def _decide_one(self, pool: PoolNode, graph: Graph, obstacle: str) -> tuple[bool, str]:
        if pool.is_large:
            return True, f"as all pools of more than {NAMED_MODULES:,} modules"
        if self.asked == MODULES:
            return False, "as requested"
        reason = obstacle or dict(self.apart).get(pool.name, "") or find_frozen(pool)
        if reason:
            return False, reason
        if self.asked == STORED:
            return True, "as requested"
        weights = facts_of(pool).weights
        if self.exportable:
            routes = [route for _, route in list_routes_of(pool, graph)]
            pays = pool.size >= MANY_IN_BUNDLE and all(route.lowering == GATHERED for route in routes)
            return pays, f"that is smaller from {MANY_IN_BUNDLE} modules on, where their weights are gathered by index"
        if self.accelerated:
            return True, "one product for all modules, and no weight is copied in a step"
        most = FEW_WEIGHTS * (MORE if pool.size >= VERY_MANY else 1)
        rule = f"it pays from {MANY} modules on, of at most {most:,} weights; it has {pool.size:,} of {weights:,}"
        return pool.size >= MANY and weights <= most, rule


def find_frozen(pool: PoolNode) -> str:
    """The reason why a pool that has grown is not stored: old modules are frozen. Empty otherwise."""
    frozen = any(node.frozen for node in pool.region(0).graph.nodes_of(OpNode))
    return f"its first {pool.size - pool.grown} modules are frozen" if frozen and pool.grown else ""


def explain_pools(graph: Graph, exportable: bool = False) -> dict[str, str]:
    """Whether each pool of a lowered graph is stored, with the reason, by name."""
    found = dict[str, str]()
    for name, (stored, reason) in Store(exportable=exportable).decide(graph).items():
        now = graph.pools()[name].stored
        how = "stored, one tensor for each weight" if now else "module by module"
        found[name] = f"{how}; {reason if now == stored else 'as requested'}"
    return found
