"""Likelihoods of whole examples, for algorithms that judge decisions."""

from __future__ import annotations

from dataclasses import replace

from modgraph.ir import Graph, OpNode, Result, copy_graph


def with_likelihoods(graph: Graph) -> tuple[Graph, dict[str, Result]]:
    """The graph with −log p(y|x, a) summed over an example's positions, by the loss whose mean it is."""
    copy, found = copy_graph(graph), dict[str, Result]()
    for loss, result in graph.losses.items():
        node = graph[result.node]
        if isinstance(node, OpNode) and node.op.likelihood:
            summed = f"{loss}:sum"
            op = replace(node, name=summed, owner=summed, op=replace(node.op, reduce="sum"))  # type: ignore[call-arg]
            copy.add(op, graph.inputs(node.name))
            found[loss] = Result(summed)
    return copy, found
