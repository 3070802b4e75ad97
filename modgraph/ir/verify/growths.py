"""Holds growths against the pools and routers that they are of."""

from __future__ import annotations

from modgraph.ir.graph import Graph
from modgraph.ir.invalid import ask
from modgraph.ir.node import GrowthNode
from modgraph.types import TensorType


def verify_growths(graph: Graph) -> None:
    """What decides is one number for the batch, the router is one that the modules are used by, and modules along one
    axis grow by one condition. Raises `InvalidGraph`."""
    growths = graph.growths()
    used = _used(graph) if growths else set()
    unlike = {pool.axis for pool in graph.pools().values() if not pool.alike} if growths else set()
    first: dict[str, str] = {}
    for node in growths:
        pool, router = graph.pool_of(node), graph.router_of(node)
        _condition(graph, node)
        ask(pool.axis not in unlike, "only a pool of modules of one kind grows", node.name, "uses")
        by = (pool.axis.name, router.name) in used
        ask(by, f"{router.name} routes nothing through {pool.name}", node.name, "uses")
        other = first.setdefault(pool.axis.name, node.name)
        ask(other == node.name, f"{other} is of the same modules", node.name, "uses")


def _used(graph: Graph) -> set[tuple[str, str]]:
    """The axes of modules that routers send along, in scans too, by their names."""
    return {(each.pool.axis.name, each.router.name) for each in graph.decisions()}


def _condition(graph: Graph, node: GrowthNode) -> None:
    inputs = graph.inputs(node.name)
    ask([*inputs] == ["when"], "one value flows into it, in the slot when", node.name, "inputs")
    ask(not node.types, "nothing comes out of it", node.name, "types")
    type_ = graph.type_of(inputs["when"])
    one = type_ == TensorType("float", per="batch")
    ask(one, f"it is decided by a number for the batch, not {type_}", node.name, "inputs")
