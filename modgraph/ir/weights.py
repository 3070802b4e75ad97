"""The weights of a graph, as its declarations say: names, shapes, starts. Counts and state dicts follow from this."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.ir.graph import Graph
from modgraph.ir.node import OpNode, PoolNode, RouteNode, RouterNode
from modgraph.ops import Initial, Signature, Weight


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
    frozen: bool = False

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def weights_of(graph: Graph) -> list[GraphWeight]:
    """Every weight and buffer once, in the order of the graph."""
    found: dict[str, GraphWeight] = {}
    for node in graph:
        match node:
            case OpNode():
                weights = _of_op(graph, node, node.owner, node.owner)
            case RouteNode():
                weights = _of_router(graph.router_of(node), graph.signature(node))
            case PoolNode():
                weights = _pooled(node)
            case _:
                continue
        for weight in weights:
            found.setdefault(weight.name, weight)
    return list(found.values())


def _of_router(router: RouterNode, signature: Signature) -> Iterator[GraphWeight]:
    for weight in signature.declaration.all_weights():
        yield _weight(signature, weight, router.name, router.name, None, router.frozen)


def _of_op(graph: Graph, node: OpNode, path: str, owner: str, shared: bool | None = None) -> Iterator[GraphWeight]:
    """The weights of an op below a path; only those its pool shares, or only the others, if asked."""
    signature = graph.signature(node)
    for place, weight in enumerate(signature.declaration.all_weights()):
        if shared is None or weight.shared == shared:
            initial = node.initial if place == 0 else None
            yield _weight(signature, weight, path, owner, initial, node.frozen)


def _weight(
    signature: Signature, weight: Weight, path: str, owner: str, initial: Initial | None, frozen: bool
) -> GraphWeight:
    shape = signature.weight_shapes()[weight.name]
    initial = initial or weight.initial
    scale = signature.scale_of(initial)
    return GraphWeight(f"{path}.{weight.name}", owner, shape, initial, scale, weight.buffer, frozen)


def _pooled(pool: PoolNode) -> Iterator[GraphWeight]:
    """`pool.3.linear.weight` for each module, `pool.shared.…` for what they have in common."""
    if pool.alike:
        region, owner = pool.region(0), f"{pool.name}.shared"
        for node in region.of_kind(OpNode):
            yield from _of_op(region, node, f"{owner}.{node.owner}", owner, shared=True)
    for module in range(pool.size):
        region, owner = pool.region(module), f"{pool.name}.{module}"
        for node in region.of_kind(OpNode):
            shared = False if pool.alike else None
            yield from _of_op(region, node, f"{owner}.{node.owner}", owner, shared)
