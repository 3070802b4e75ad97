"""Make inference a pure function of one example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import Change, Graph, Node, OpNode, Part, RouterNode, rewritten
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass


@dataclass(frozen=True)
class Determinize(Pass):
    """Take out what only training does: dropout, routers' noise, sampling and capacity, and what only these need."""

    name: ClassVar[str] = "determinize"

    def __call__(self, graph: Graph) -> Graph:
        found = rewritten(graph, _deterministic)
        return InferenceOnly()(found) if any(map(_leaves_out, graph.parts())) else found

    def ensures(self, graph: Graph) -> bool:
        return all(_deterministic(node, part) == node for part in graph.parts() for node in part.graph)


def _leaves_out(part: Part) -> bool:
    """Whether something in a graph is only needed in training."""
    return any(
        node.op.outside_training and len(part.graph.inputs(node.name)) > 1 for node in part.graph.of_kind(OpNode)
    )


def _deterministic(node: Node, part: Part) -> Change:
    match node:
        case OpNode() if node.op.outside_training:
            return part.graph.inputs(node.name)[node.op.outside_training]
        case RouterNode():
            return replace(node, router=node.router.deterministic())
        case _:
            return node
