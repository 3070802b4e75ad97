"""Which pools can be stored: one tensor for each weight, with a row for each module."""

from __future__ import annotations

from collections.abc import Iterator

from modgraph.ir.analysis.learnt import find_module_axes
from modgraph.ir.graph import Graph
from modgraph.ir.node import OpNode, PoolNode, RouteNode
from modgraph.ir.part import Part
from modgraph.routers import OneModule


def find_obstacle(pool: PoolNode, graph: Graph) -> str:
    """The reason why a pool cannot be stored; empty if it can."""
    if not pool.is_homogeneous:
        return "its modules are of several kinds"
    if pool.has_pools:
        return "its modules have pools of their own"
    ops = [node.op for node in pool.region(0).graph.nodes_of(OpNode)]
    if not any(op.all_weights() for op in ops):
        return "its modules have no weights"
    for op in ops:
        if any(weight.buffer for weight in op.all_weights()) or op.over_batch:
            return f"{op.name} has a state or reads all messages of its module"
        if op.by_chance:
            return f"{op.name} is random in training, and noise is sampled for each module"
        if op.all_weights() and not op.gathers:
            return f"{op.name} does not run on stacked weights"
    growing = (name for name, of in find_module_axes(graph).items() if of.name != pool.axis.name or of.others)
    if any(name.startswith(f"{pool.name}.") for name in growing):
        return "its weights have an axis that may grow"
    if any(isinstance(part.graph.declaration_of(route), OneModule) for part, route in list_routes_of(pool, graph)):
        return "a route names one of its modules, and only that one learns from it"
    return ""


def list_routes_of(pool: PoolNode, graph: Graph) -> Iterator[tuple[Part, RouteNode]]:
    """List the routes to a pool, in scans too."""
    for part in graph.parts():
        for route in part.graph.nodes_of(RouteNode):
            if part.graph.pool_of(route).name == pool.name:
                yield part, route
