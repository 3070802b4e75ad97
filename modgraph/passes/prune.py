"""Leave out what nothing needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from modgraph.ir import (
    DecisionNode,
    Graph,
    GrowthNode,
    InputNode,
    LossNode,
    OutputNode,
    TargetNode,
    moved_states,
    rewritten,
)
from modgraph.passes.infrastructure import Pass

ENDS = InputNode | TargetNode | OutputNode | LossNode | DecisionNode | GrowthNode


@dataclass(frozen=True)
class Prune(Pass):
    """Leave out what no output, loss, decision, growth or next state needs, and none of the nodes that are `asked` of a
    model besides. Inputs and targets stay."""

    name: ClassVar[str] = "prune"

    asked: frozenset[str] = frozenset()

    def __call__(self, graph: Graph) -> Graph:
        dead = self._dead(graph)
        if not dead:
            return graph
        return rewritten(graph, lambda node, part: None if part.graph is graph and node.name in dead else node)

    def ensures(self, graph: Graph) -> bool:
        return not self._dead(graph)

    def _dead(self, graph: Graph) -> set[str]:
        results = (*graph.records().values(), *moved_states(graph).values())
        ends = [node.name for node in graph if isinstance(node, ENDS) or node.name in self.asked]
        return {node.name for node in graph} - graph.ancestors([*ends, *(result.node for result in results)])
