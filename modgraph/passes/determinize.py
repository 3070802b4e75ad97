"""Make inference a pure function of one example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import Graph, Node, OpNode, PoolNode, Result, RouterNode, ScanNode
from modgraph.passes.infrastructure import Pass, rebuilt


@dataclass(frozen=True)
class Determinize(Pass):
    """Take out what only training does: dropout, and routers' noise, sampling and capacity."""

    name: ClassVar[str] = "determinize"

    def __call__(self, graph: Graph) -> Graph:
        moved: dict[Result, Result] = {}
        for node in graph.of_kind(OpNode):
            if node.op.training_only:
                (source,) = graph.inputs(node.name).values()
                moved[Result(node.name)] = moved.get(source, source)

        def changed(node: Node) -> Node | None:
            match node:
                case OpNode() if node.op.training_only:
                    return None
                case PoolNode():
                    return replace(node, regions=tuple(map(self, node.regions)))
                case ScanNode():
                    return replace(node, region=self(node.region))
                case RouterNode():
                    return replace(node, router=node.router.deterministic())
                case _:
                    return node

        return rebuilt(graph, changed, moved)
