"""What is the same for every example: computed once, not for each."""

from __future__ import annotations

from modgraph.ir.graph import Graph
from modgraph.ir.node import OpNode


def alike(graph: Graph) -> frozenset[str]:
    """The ops of a graph whose values are made of learned and given arrays alone, nothing of it by chance."""
    found: set[str] = set()
    for node in graph.of_kind(OpNode):
        sources = {source.node for source in graph.inputs(node.name).values()}
        if node.op.is_array or (sources and sources <= found and _is_function(node)):
            found.add(node.name)
    return frozenset(found)


def _is_function(node: OpNode) -> bool:
    op = node.op
    by_chance = op.without_chance() != op or op.zero_outside_training or op.outside_training or op.draws
    return not by_chance and all(type_.per == "example" for type_ in node.types)
