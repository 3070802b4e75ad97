"""Routes by ids: weights that are products of gates and one-hot ids never get an axis of modules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from modgraph.frozen import replace_fields
from modgraph.ir import (
    Built,
    Change,
    DecisionNode,
    Graph,
    Node,
    Part,
    Result,
    RouteNode,
    RouterNode,
    rewrite_with_moves,
)
from modgraph.ir.analysis.slots import Builder, Slots, read_slots
from modgraph.ir.node import Inputs
from modgraph.ops import Op
from modgraph.ops.axes import NewAxis
from modgraph.ops.compared import NotEqual
from modgraph.ops.elementwise import MaskPadding
from modgraph.ops.situation import StopGradient
from modgraph.passes.infrastructure import Moved, Pass
from modgraph.routers import IdChoice
from modgraph.routers.choice import TokenChoice


@dataclass(frozen=True)
class ByIds(Pass):
    """Send each token by the ids of its modules and their gates where the weights of a route name them.

    A choice by `top_k` is read as ids in pools of at least `many` modules. What a router records is computed from the
    weights, as before, but only if something reads it; dead nodes stay for `Prune`.
    """

    name: ClassVar[str] = "ids"

    many: int = 256

    def rewrite(self, graph: Graph) -> Moved:
        known: dict[int, dict[str, Found]] = {}

        def rule(node: Node, part: Part) -> Change:
            if not isinstance(node, RouteNode | RouterNode):
                return node
            if id(part.graph) not in known:
                known[id(part.graph)] = self.find_all(part.graph)
            found = known[id(part.graph)].get(node.name)
            if found is None:
                return node
            if isinstance(node, RouterNode):
                return replace_fields(node, router=found.router)
            return _build(node, found, part.graph)

        return Moved(*rewrite_with_moves(graph, rule))

    def find_all(self, graph: Graph) -> dict[str, Found]:
        """Find the routes of a graph that go by ids, and their routers, by name."""
        found: dict[str, Found] = {}
        for router in graph.nodes_of(RouterNode):
            users = [each for each in graph.users_of(router.name) if isinstance(each, RouteNode)]
            routes = {each.name: self._find(each, graph) for each in users}
            whole = {name: each for name, each in routes.items() if each is not None}
            if users and len(whole) == len(routes) and len({each.router for each in whole.values()}) == 1:
                found |= {**whole, router.name: next(iter(whole.values()))}
        return found

    def _find(self, route: RouteNode, graph: Graph) -> Found | None:
        router, pool = graph.declaration_of(route), graph.pool_of(route)
        if type(router) is not TokenChoice or router.straight:
            return None
        builder = Builder(graph, f"{route.name}~")
        slots = read_slots(graph.inputs(route.name)["weights"], pool.axis, builder, pool.size >= self.many)
        return None if slots is None else Found(IdChoice(slots=slots.count), slots, builder)


@dataclass(frozen=True, eq=False)
class Found:
    """How a route goes by ids: its router, the ids and gates, and the nodes that compute them."""

    router: IdChoice
    slots: Slots
    builder: Builder


def _build(route: RouteNode, found: Found, graph: Graph) -> Built:
    """Build a route by ids; what the router recorded is computed by ops, for a decision."""
    slots, builder, inputs = found.slots, found.builder, graph.inputs(route.name)
    operands = {"tokens": inputs["tokens"], "ids": slots.ids, "gates": builder.make_gates(slots)}
    nodes: list[tuple[Node, Inputs]] = [
        *builder.nodes,
        (replace_fields(route, types=route.types[:1], label=""), operands),
    ]
    router, before = graph.declaration_of(route), len(builder.nodes)
    if not router.records:
        return Built(tuple(nodes))
    ops: dict[str, tuple[Op, ...]] = {"weights": (), "scores": (StopGradient(),), "choice": (NotEqual(right=0.0),)}
    records = {
        record.name: _record(record.name, inputs[slot], each, builder)
        for record, (slot, each) in zip(router.records, ops.items(), strict=True)
    }
    facts: dict[str, Any] = {"records": router.records, "facts": router.facts, "label": route.label or route.name}
    decision = DecisionNode(name=f"{route.name}~decision", **facts)
    read = {"tokens": inputs["tokens"], "value": Result(route.name), **records}
    moved = {Result(route.name, at): value for at, value in enumerate(records.values(), start=1)}
    uses = {decision.name: graph.uses(route.name)}
    return Built((*nodes, *builder.nodes[before:], (decision, read)), uses, moved)


def _record(name: str, value: Result, ops: Iterable[Op], builder: Builder) -> Result:
    """Build what a router records of a value [..., modules]; a single token has an axis of its own."""
    if MaskPadding().bind(builder.type_of(value)).padded:
        value = builder.add(name, MaskPadding(), value)
    if len(builder.shape_of(value)) == 1:
        ops = (*ops, NewAxis(length=1, axis="", at=-2))
    for op in ops:
        value = builder.add(name, op, value)
    return value
