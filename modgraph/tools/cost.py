"""What an architecture costs: parameters, and multiply-accumulates per example.

MACs are those of linear maps, convolutions, attention's QKᵀ and AV, and a router's products; biases, norms and
activations are left out. `macs` runs every module on every message it could get, `active_macs` the selected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from modgraph.ir import Graph, Node, OpNode, PoolNode, RouteNode, bind_route
from modgraph.ops import Signature, TensorType
from modgraph.ops.declaration import product


@dataclass(frozen=True)
class Cost:
    """Counts of a whole graph, and by node."""

    parameters: int = 0
    trainable: int = 0
    macs: int = 0
    active_macs: int = 0
    nodes: Mapping[str, Cost] = ()  # type: ignore[assignment]

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in COUNTS))

    def as_json(self) -> dict[str, Any]:
        counts: dict[str, Any] = {name: getattr(self, name) for name in COUNTS}
        if self.nodes:
            counts["nodes"] = {name: cost.as_json() for name, cost in self.nodes.items()}
        return counts


COUNTS = tuple(field.name for field in fields(Cost) if field.name != "nodes")


def cost_of(graph: Graph, lengths: Mapping[str, int] | None = None) -> Cost:
    """The cost of a graph, symbolic axes taken at the given lengths (1 where none is given).

    Nodes stand under the names of their weights, each name prefix with the sum of what is below it.
    """
    counts: dict[str, Cost] = {}
    counted: set[str] = set()
    for node in graph:
        for name, cost in _costs(graph, node, dict(lengths or {}), counted):
            counts[name] = counts.get(name, Cost()) + cost
    total = sum(counts.values(), Cost())
    return Cost(*(getattr(total, name) for name in COUNTS), nodes=_with_subtotals(counts))


def _costs(graph: Graph, node: Node, lengths: dict[str, int], counted: set[str]) -> list[tuple[str, Cost]]:
    match node:
        case OpNode():
            cost = _op_cost(graph, node, lengths)
            if node.owner in counted:
                cost = Cost(macs=cost.macs, active_macs=cost.active_macs)
            counted.add(node.owner)
            return [(node.owner, cost)]
        case PoolNode():
            return list(_pool_parameters(node).items())
        case RouteNode():
            return _route_costs(graph, node, lengths, counted)
        case _:
            return []


def _op_cost(graph: Graph, node: OpNode, lengths: dict[str, int]) -> Cost:
    signature = graph.signature(node)
    parameters = sum(_weight_counts(signature).values())
    macs = _macs(_at_lengths(signature, lengths))
    return Cost(parameters, parameters, macs, macs)


def _pool_parameters(pool: PoolNode) -> dict[str, Cost]:
    """Parameters by module, and those that all modules share."""
    shared = own = 0
    for node in pool.region.of_kind(OpNode):
        signature = pool.region.signature(node)
        counts = _weight_counts(signature)
        for weight in node.op.all_weights():
            count = counts.get(weight.name, 0)
            shared, own = (shared + count, own) if weight.shared else (shared, own + count)
    costs = {f"{pool.name}.{module}": Cost(own, own) for module in range(pool.size)}
    if shared:
        costs[f"{pool.name}.shared"] = Cost(shared, shared)
    return costs


def _route_costs(
    graph: Graph, route: RouteNode, lengths: dict[str, int], counted: set[str]
) -> list[tuple[str, Cost]]:
    """A route's messages, counted under its pool, and its decisions, under its router."""
    pool, router = graph.pool_of(route), graph.router_of(route)
    tokens = _fixed(graph.type_of(graph.inputs(route.name)["tokens"]), lengths)
    signature = bind_route(router.router, pool, tokens)
    decisions = math.prod(signature.axes.lead or ())  # type: ignore[arg-type]
    senders = signature.axes["N"]
    per_message = sum(_op_cost(pool.region, node, lengths).macs for node in pool.region.of_kind(OpNode))
    every = decisions * senders * pool.size * per_message
    active = decisions * senders * router.router.active_modules(pool.size) * per_message
    routing = decisions * signature.axes.call(router.router.macs)
    parameters = 0 if router.name in counted else sum(_weight_counts(signature).values())
    counted.add(router.name)
    return [
        (pool.name, Cost(macs=every, active_macs=active)),
        (router.name, Cost(parameters, parameters, routing, routing)),
    ]


def _weight_counts(signature: Signature) -> dict[str, int]:
    """Numbers of elements by weight; buffers are not parameters."""
    weights = {weight.name: weight for weight in signature.declaration.all_weights()}
    return {
        name: math.prod(shape) for name, shape in signature.weight_shapes().items() if not weights[name].buffer
    }


def _at_lengths(signature: Signature, lengths: dict[str, int]) -> Signature:
    operands = [_fixed(type_, lengths) for type_ in signature.operands]
    bound: Signature = signature.declaration.bind(*operands)
    return bound


def _fixed(type_: TensorType, lengths: dict[str, int]) -> TensorType:
    shape = tuple(lengths.get(axis, 1) if isinstance(axis, str) else axis for axis in type_.shape)
    return type_.with_shape(shape)


def _macs(signature: Signature) -> int:
    return product(signature.axes.lead or ()) * int(signature.axes.call(signature.declaration.macs))


def _with_subtotals(counts: dict[str, Cost]) -> dict[str, Cost]:
    """The costs by name, and for every prefix of a name the sum of what is below it."""
    totals: dict[str, Cost] = {}
    for name, cost in counts.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            prefix = ".".join(parts[:end])
            totals[prefix] = totals.get(prefix, Cost()) + cost
    return totals
