"""Leave out what nothing needs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from modgraph.ir import Graph, moved_states, rewritten
from modgraph.ir.node import DecisionNode, GrowthNode, InputNode, LossNode, OutputNode, TargetNode
from modgraph.passes.infrastructure import Pass

ENDS = InputNode | TargetNode | OutputNode | LossNode | DecisionNode | GrowthNode


@dataclass(frozen=True)
class Prune(Pass):
    """Leave out what no output, loss, decision, growth or next state needs, and none of the nodes that are `asked` of a
    model besides. Inputs and targets stay."""

    name: ClassVar[str] = "prune"

    asked: frozenset[str] = frozenset()

    def __call__(self, graph: Graph) -> Graph:
        dead = dead_nodes(graph, self.asked)
        if not dead:
            return graph
        return rewritten(graph, lambda node, part: None if part.graph is graph and node.name in dead else node)


def dead_nodes(graph: Graph, asked: Set[str]) -> set[str]:
    """The nodes that nothing needs."""
    results = (*graph.records().values(), *moved_states(graph).values())
    ends = [node.name for node in graph if isinstance(node, ENDS) or node.name in asked]
    return {node.name for node in graph} - graph.ancestors([*ends, *(result.node for result in results)])
