"""Make inference a pure function of one example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import Graph, LossNode, Node, OpNode, PoolNode, Result, RouterNode, TargetNode
from modgraph.passes.infrastructure import Pass, rebuilt


@dataclass(frozen=True)
class Determinize(Pass):
    """Take out what only training does: dropout, and routers' noise, sampling and capacity."""

    name: ClassVar[str] = "determinize"

    def __call__(self, graph: Graph) -> Graph:
        moved = {}
        for node in graph.of_kind(OpNode):
            if node.op.training_only:
                (source,) = graph.inputs(node.name).values()
                moved[Result(node.name)] = source

        def changed(node: Node) -> Node | None:
            match node:
                case OpNode() if node.op.training_only:
                    return None
                case PoolNode():
                    return replace(node, regions=tuple(map(self, node.regions)))
                case RouterNode():
                    return replace(node, router=node.router.deterministic())
                case _:
                    return node

        return rebuilt(graph, changed, moved)


@dataclass(frozen=True)
class InferenceOnly(Pass):
    """Leave out targets, losses, and what only they need."""

    name: ClassVar[str] = "inference"

    def __call__(self, graph: Graph) -> Graph:
        kept = graph.ancestors(f"output.{name}" for name in graph.outputs)
        kept |= {node.name for node in graph if node.kind == "input"}
        needless = {node.name for node in graph if isinstance(node, TargetNode | LossNode)}

        def changed(node: Node) -> Node | None:
            return node if node.name in kept and node.name not in needless else None

        return rebuilt(graph, changed)
