"""Make inference a pure function of one example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from modgraph.frozen import change_fields
from modgraph.ir import (
    Change,
    DecisionNode,
    Graph,
    Node,
    OpNode,
    Part,
    Result,
    RouteNode,
    RouterNode,
    Rule,
    rewrite_graph,
)
from modgraph.ops.zeros import ANYWHERE
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass
from modgraph.routers import Router


@dataclass(frozen=True)
class Determinize(Pass):
    """Remove what only training needs: dropout, noise, sampling and capacity, and the nodes that only these read.

    Decisions keep the records of their last round.
    """

    name: ClassVar[str] = "determinize"

    def __call__(self, graph: Graph) -> Graph:
        found = rewrite_graph(graph, deterministic())
        return InferenceOnly()(found) if any(map(_leaves_out, graph.parts())) else found


def _leaves_out(part: Part) -> bool:
    """Whether only training needs something in a graph."""
    graph = part.graph
    return any(node.rounds > 1 for node in graph.nodes_of(DecisionNode)) or any(
        node.op.zero_outside_training
        or ((node.op.outside_training or node.op.deterministic() != node.op) and len(graph.inputs(node.name)) > 1)
        for node in graph.nodes_of(OpNode)
    )


def deterministic() -> Rule:
    """The rewrite rule of `Determinize`."""
    zeros: dict[int, set[Result]] = {}  # of graphs by identity

    def rule(node: Node, part: Part) -> Change:
        graph = part.graph
        match node:
            case OpNode(op=op) if op.outside_training:
                return graph.inputs(node.name)[op.outside_training]
            case OpNode(op=op) if 0 in op.neutral.values():
                inputs = graph.inputs(node.name)
                if id(graph) not in zeros:
                    zeros[id(graph)] = _zeros(graph)
                for slot in op.neutral if len(inputs) == 2 else ():  # a sum with noise is its other operand
                    (other,) = (result for name, result in inputs.items() if name != slot)
                    if inputs[slot] in zeros[id(graph)] and graph.type_of(other) == node.types[0]:
                        return other  # unless that lacks axes of the sum
                return node
            case OpNode():
                return change_fields(node, op=node.op.deterministic())
            case RouterNode(router=Router() as router):
                return change_fields(node, router=router.deterministic())
            case DecisionNode():
                return change_fields(node, rounds=1)
            case RouteNode() if node.lowering is not None:
                router = graph.declaration_of(node)
                return node if router.deterministic() == router else change_fields(node, lowering=None)
            case _:
                return node

    return rule


def _zeros(graph: Graph) -> set[Result]:
    """Find the results of a graph that are zero in inference: noise, and products with it."""
    found: set[Result] = set()
    for node in graph.nodes_of(OpNode):
        operands = [*graph.inputs(node.name).values()]
        zero = any(place < len(operands) and operands[place] in found for place in node.op.zero_with())
        if operands and all(operand in found for operand in operands):
            known = (ANYWHERE,) * len(operands)
            zero = zero or node.op.propagate_choices(graph.signature(node), known) is not None
        if node.op.zero_outside_training or zero:
            found.add(Result(node.name))
    return found
