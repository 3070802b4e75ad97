"""The weights of a graph, as its declarations say: names, shapes, starts. Counts and state dicts follow from this."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.ir.graph import Graph
from modgraph.ir.node import OpNode, PoolNode, RouteNode
from modgraph.ops import Initial, Signature


@dataclass(frozen=True)
class GraphWeight:
    """One tensor of the state dict. `owner` is the op, module of a pool or router it belongs to; `scale` is the bound
    or the deviation of its start."""

    name: str
    owner: str
    shape: tuple[int, ...]
    initial: Initial
    scale: float
    buffer: bool

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def weights_of(graph: Graph) -> list[GraphWeight]:
    """Every weight and buffer once, in the order of the graph."""
    found: dict[str, GraphWeight] = {}
    for node in graph:
        match node:
            case OpNode():
                weights = _declared(graph.signature(node), node.owner, node.owner)
            case RouteNode():
                router = graph.router_of(node).name
                weights = _declared(graph.signature(node), router, router)
            case PoolNode():
                weights = _pooled(node)
            case _:
                continue
        for weight in weights:
            found.setdefault(weight.name, weight)
    return list(found.values())


def _declared(signature: Signature, path: str, owner: str, shared: bool | None = None) -> Iterator[GraphWeight]:
    """The weights of one declaration below a path; only shared or only own ones, if asked."""
    shapes = signature.weight_shapes()
    for weight in signature.declaration.all_weights():
        if shared is None or weight.shared == shared:
            scale = signature.bound_of(weight)
            name = f"{path}.{weight.name}"
            yield GraphWeight(name, owner, shapes[weight.name], weight.initial, scale, weight.buffer)


def _pooled(pool: PoolNode) -> Iterator[GraphWeight]:
    """`pool.3.linear.weight` for each module, `pool.shared.…` for what they have in common."""
    region = pool.region
    for node in region.of_kind(OpNode):
        owner = f"{pool.name}.shared"
        yield from _declared(region.signature(node), f"{owner}.{node.owner}", owner, shared=True)
    for module in range(pool.size):
        owner = f"{pool.name}.{module}"
        for node in region.of_kind(OpNode):
            yield from _declared(region.signature(node), f"{owner}.{node.owner}", owner, shared=False)
