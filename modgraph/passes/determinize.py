"""Make inference a pure function of one example."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from modgraph.ir import Change, DecisionNode, Graph, Node, OpNode, Part, Result, RouteNode, RouterNode, rewritten
from modgraph.ops import Op
from modgraph.ops.zeros import ANYWHERE
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass
from modgraph.routers import Router


@dataclass(frozen=True)
class Determinize(Pass):
    """Take out what only training does: dropout, noise, sampling and capacity, and what only these need.

    Of what routers decide in several rounds the last is left.
    """

    name: ClassVar[str] = "determinize"

    def __call__(self, graph: Graph) -> Graph:
        found = rewritten(graph, _Deterministic())
        return InferenceOnly()(found) if any(map(_leaves_out, graph.parts())) else found

    def ensures(self, graph: Graph) -> bool:
        rule = _Deterministic()
        parts = [*graph.parts(), *(Part(region.graph) for _, region in graph.modules())]
        return all(rule(node, part) == node for part in parts for node in part.graph)


def _leaves_out(part: Part) -> bool:
    """Whether something in a graph is only needed in training."""
    rounds = any(node.rounds > 1 for node in part.graph.of_kind(DecisionNode))
    return rounds or any(
        node.op.zero_outside_training or (_differs(node.op) and len(part.graph.inputs(node.name)) > 1)
        for node in part.graph.of_kind(OpNode)
    )


def _differs(op: Op) -> bool:
    return bool(op.outside_training) or op.without_chance() != op


@dataclass(frozen=True)
class _Deterministic:
    """What takes a node's place. `zeros` has for each graph that was asked of its results that are zero in inference,
    since they are noise or a product with it."""

    zeros: dict[int, frozenset[Result]] = field(default_factory=dict)

    def __call__(self, node: Node, part: Part) -> Change:
        match node:
            case OpNode() if node.op.outside_training:
                return part.graph.inputs(node.name)[node.op.outside_training]
            case OpNode() if node.op.unchanged_by_zero:
                return self._without_noise(node, part.graph)
            case OpNode():
                return replace(node, op=node.op.without_chance())
            case RouterNode(router=Router() as router):
                return replace(node, router=router.deterministic())
            case DecisionNode():
                return replace(node, rounds=1)
            case RouteNode() if node.lowering is not None:
                router = part.graph.declaration_of(node)
                return node if router.deterministic() == router else replace(node, lowering=None)
            case _:
                return node

    def _without_noise(self, node: OpNode, graph: Graph) -> Node | Result:
        """A sum with noise is its other operand, unless that lacks axes of the sum."""
        inputs = graph.inputs(node.name)
        for slot in node.op.unchanged_by_zero if len(inputs) == 2 else ():
            (other,) = (result for name, result in inputs.items() if name != slot)
            if inputs[slot] in self._zeros_of(graph) and graph.type_of(other) == node.types[0]:
                return other
        return node

    def _zeros_of(self, graph: Graph) -> frozenset[Result]:
        if id(graph) not in self.zeros:
            self.zeros[id(graph)] = _zeros(graph)
        return self.zeros[id(graph)]


def _zeros(graph: Graph) -> frozenset[Result]:
    """The results of a graph that are zero in inference."""
    found: set[Result] = set()
    for node in graph.of_kind(OpNode):
        operands = [*graph.inputs(node.name).values()]
        zero = any(place < len(operands) and operands[place] in found for place in node.op.zero_with())
        if operands and all(operand in found for operand in operands):
            known = (ANYWHERE,) * len(operands)
            zero = zero or node.op.propagate_choices(graph.signature(node), known) is not None
        if node.op.zero_outside_training or zero:
            found.add(Result(node.name))
    return frozenset(found)
