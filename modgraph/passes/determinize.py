"""Make inference a pure function of one example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import Change, Graph, Node, OpNode, Part, RouterNode, rewritten
from modgraph.passes.infrastructure import Pass


@dataclass(frozen=True)
class Determinize(Pass):
    """Take out what only training does: dropout, and routers' noise, sampling and capacity."""

    name: ClassVar[str] = "determinize"

    def __call__(self, graph: Graph) -> Graph:
        return rewritten(graph, _deterministic)

    def ensures(self, graph: Graph) -> bool:
        return all(_deterministic(node, part) == node for part in graph.parts() for node in part.graph)


def _deterministic(node: Node, part: Part) -> Change:
    match node:
        case OpNode() if node.op.training_only:
            (source,) = part.graph.inputs(node.name).values()
            return source
        case RouterNode():
            return replace(node, router=node.router.deterministic())
        case _:
            return node
