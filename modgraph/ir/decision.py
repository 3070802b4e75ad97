"""What routers decide, for all who read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modgraph.declare import CHOSEN, Record, Role, record_as
from modgraph.ir.node import DecisionNode, PoolNode, Result, RouteNode, RouterNode
from modgraph.routers import RouterFacts
from modgraph.types import Axis, Shape

if TYPE_CHECKING:
    from modgraph.ir.part import Part


@dataclass(frozen=True)
class Decision:
    """What a router decides at one place: a route, or a use of a router that is written in the language."""

    part: Part
    node: RouteNode | DecisionNode

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def label(self) -> str:
        """What users know it by."""
        return self.node.label or self.node.name

    @property
    def pool(self) -> PoolNode:
        return self.part.graph.pool_of(self.node)

    @property
    def router(self) -> RouterNode:
        return self.part.graph.router_of(self.node)

    @property
    def tokens(self) -> Result:
        """What is routed."""
        return self.part.graph.inputs(self.name)["tokens"]

    @property
    def facts(self) -> RouterFacts:
        """How the router decides."""
        node = self.node
        return node.facts if isinstance(node, DecisionNode) else self.part.graph.declaration_of(node).facts

    @property
    def declared(self) -> tuple[Record, ...]:
        """The records that there are, with their roles."""
        node = self.node
        return node.records if isinstance(node, DecisionNode) else self.part.graph.declaration_of(node).records

    def record_as(self, *roles: Role) -> str | None:
        """The record in the first of these roles that there is one for."""
        found = record_as(self.declared, *roles)
        return None if found is None else found.name

    @property
    def rounds(self) -> dict[str, tuple[Result, ...]]:
        """Each record after each round, by its name, in the graph that the router decides in."""
        node = self.node
        if isinstance(node, RouteNode):
            return {each.name: (Result(node.name, at),) for at, each in enumerate(self.declared, start=1)}
        inputs, rounds = self.part.graph.inputs(node.name), range(1, node.rounds + 1)
        return {each.name: tuple(inputs[node.slot(each.name, at)] for at in rounds) for each in node.records}

    @property
    def inside(self) -> dict[str, Result]:
        """Each record after the last round, in the graph that the router decides in."""
        return {name: results[-1] for name, results in self.rounds.items()}

    @property
    def results(self) -> dict[str, Result]:
        """Each record after the last round, outside of a scan: those of all its steps."""
        return {name: self.part.outside(result) for name, result in self.inside.items()}

    @property
    def value(self) -> Result:
        """What the route yields."""
        return Result(self.name) if isinstance(self.node, RouteNode) else self.part.graph.inputs(self.name)["value"]

    @property
    def senders(self) -> Shape:
        """The axes that gates and choices have before that of modules, as the surroundings of a router name them.

        They are those of what is routed before a message, one of length 1 if there are none; inside a scan, that of its
        steps comes first.
        """
        graph, steps = self.part.graph, () if self.part.scan is None else self.part.scan.types[0].shape[:1]
        if isinstance(self.node, RouteNode):
            gates = self.record_as(Role.GATES, *CHOSEN)
            return () if gates is None else (*steps, *graph.type_of(self.inside[gates]).shape[:-1])
        tokens, own = graph.type_of(self.tokens).shape, self.pool.axis
        outer = tokens[: len(tokens) - len(self.pool.message.shape)] or (Axis(1),)
        return (*steps, *(Axis(axis.size) if axis == own else axis for axis in outer))
