"""Refuses a model whose weights do not fit in memory, before any is allocated."""

from __future__ import annotations

from modgraph_runtime.memory import SMALL, free_memory, in_words

from modgraph.backends.errors import WeightsBeyondMemory
from modgraph.diagnostics import ModgraphError, Span
from modgraph.ir import Graph, GraphWeight, weights_of

BYTES = 4  # of a float32


def refuse_large_weights(graph: Graph) -> None:
    """Raises `ModgraphError` where the weights of a graph need more memory than is free."""
    weights = weights_of(graph)
    needed = BYTES * sum(weight.count for weight in weights)
    free = free_memory() if needed > SMALL else None
    if free is None or needed <= free:
        return
    largest = max(weights, key=lambda weight: weight.count)
    fault = WeightsBeyondMemory(
        span=_find_span(graph, largest),
        needed=in_words(needed),
        free=in_words(free),
        name=largest.name,
        shape=str([*largest.shape]),
    )
    raise ModgraphError([fault])


def _find_span(graph: Graph, weight: GraphWeight) -> Span | None:
    """Where a spec declares the op or the pool of a weight."""
    owners = {getattr(node, "owner", node.name): node.span for part in graph.parts() for node in part.graph}
    path = weight.owner.split(".")
    above = (".".join(path[:end]) for end in range(len(path), 0, -1))
    return next((owners[each] for each in above if owners.get(each) is not None), None)
