"""The weights of a graph, from its declarations: names, shapes, initialisers. Counts and state dicts follow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from modgraph.declare import Initial, Signature, sizes
from modgraph.frozen import replace_fields
from modgraph.ir.graph import Graph, compute_once
from modgraph.ir.node import EACH, Node, OpNode, PoolNode, RouteNode, ScanNode
from modgraph.types import Shape


@dataclass(frozen=True)
class GraphWeight:
    """One tensor of the state dict.

    `owner` is the op, module of a pool or router that owns it. `scale` is the bound or the deviation of its
    initialiser. All modules of a pool share a `shared` weight; outer axes of a stacked one stack matrices. An axis of
    modules has the pool's name: the weight grows along it with the pool. One with `rows`, `pool.*.linear.weight`, holds
    those of all modules of a large pool. `place` is that of the declaring node, in a module `pool/0/linear`.
    """

    name: str
    owner: str
    axes: Shape
    initial: Initial
    scale: float
    buffer: bool
    place: str
    frozen: bool = False
    shared: bool = False
    is_stacked: bool = False
    rows: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return sizes(self.axes)

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def weights_of(graph: Graph) -> list[GraphWeight]:
    """List every weight and buffer once, in the order of the graph."""
    return [*_collect_weights(graph)]


@compute_once
def _collect_weights(graph: Graph) -> tuple[GraphWeight, ...]:
    found: dict[str, GraphWeight] = {}
    for node in graph:
        for weight in list_node_weights(graph, node):
            found.setdefault(weight.name, weight)
    return tuple(found.values())


def list_node_weights(graph: Graph, node: Node) -> Iterator[GraphWeight]:
    """List the weights and buffers of one node of a graph."""
    match node:
        case OpNode():
            yield from _declaration_weights(graph.signature(node), node.name, node.owner, node.initial, node.frozen)
        case RouteNode():
            router = graph.router_of(node)
            yield from _declaration_weights(graph.signature(node), router.name, router.name, None, router.frozen)
        case PoolNode():
            yield from _pool_weights(node)
        case ScanNode():
            yield from weights_of(node.region.graph)


def _declaration_weights(
    signature: Signature, place: str, owner: str, initial: Initial | None, frozen: bool
) -> Iterator[GraphWeight]:
    """List the weights of one declaration, with its owner as prefix; `initial` replaces the initialiser of the
    first."""
    axes = signature.weight_axes()
    for at, weight in enumerate(signature.declaration.all_weights()):
        start = initial if initial and not at else weight.initial
        name, scale = join_name(owner, weight.name), signature.compute_scale(weight, start)
        facts = place, frozen, weight.shared, weight.is_stacked
        yield GraphWeight(name, owner, axes[weight.name], start, scale, weight.buffer, *facts)


def _pool_weights(pool: PoolNode) -> Iterator[GraphWeight]:
    """List `pool.3.linear.weight` for each module, `pool.*.linear.weight` for all modules of a large pool, and
    `pool.shared.…` for weights that a homogeneous pool shares.

    A nested pool shares weights within one outer module.
    """

    def place_in_pool(key: object, weight: GraphWeight, **others: Any) -> GraphWeight:
        owner = f"{pool.name}.{key}"
        return replace_fields(weight, name=f"{owner}.{weight.name}", owner=owner, **others)

    regions = [
        [
            replace_fields(
                weight, place=f"{pool.name}/{at}/{weight.place}", shared=weight.shared and isinstance(node, OpNode)
            )
            for node in region.graph
            for weight in list_node_weights(region.graph, node)
        ]
        for at, region in enumerate(pool.regions)
    ]
    if pool.is_homogeneous:
        yield from (place_in_pool("shared", weight) for weight in regions[0] if weight.shared)
    if pool.is_large:
        yield from (
            place_in_pool(EACH, each, axes=(pool.axis, *each.axes), is_stacked=True, rows=True)
            for each in regions[0]
            if not each.shared
        )
        return
    for module in range(pool.size):
        old = module < pool.size - pool.grown
        for each in regions[0 if pool.is_homogeneous else module]:
            if not (pool.is_homogeneous and each.shared):
                yield place_in_pool(module, each, frozen=each.frozen and old)


def join_name(owner: str, name: str) -> str:
    """Join the absolute name of a weight; a learned array has the name of its declaration."""
    return f"{owner}.{name}" if name else owner
