"""Weights are refused that memory does not hold, before any is made."""

from __future__ import annotations

from modgraph_runtime.memory import SMALL, free_memory, in_words

from modgraph.backends.errors import WeightsBeyondMemory
from modgraph.diagnostics import ModgraphError, Span
from modgraph.ir import Graph, GraphWeight, weights_of

BYTES = 4  # of a number in float32


def refuse_beyond_memory(graph: Graph) -> None:
    """Raises `ModgraphError` where the weights of a graph need more memory than is free."""
    weights = weights_of(graph)
    needed = BYTES * sum(weight.count for weight in weights)
    free = free_memory() if needed > SMALL else None
    if free is None or needed <= free:
        return
    largest = max(weights, key=lambda weight: weight.count)
    found = WeightsBeyondMemory(
        span=_place_of(graph, largest),
        needed=in_words(needed),
        free=in_words(free),
        name=largest.name,
        shape=str([*largest.shape]),
    )
    raise ModgraphError([found])


def _place_of(graph: Graph, weight: GraphWeight) -> Span | None:
    """Where a spec writes the op of a weight, or the pool that has it."""
    owners = {getattr(node, "owner", node.name): node.span for part in graph.parts() for node in part.graph}
    path = weight.owner.split(".")
    above = (".".join(path[:end]) for end in range(len(path), 0, -1))
    return next((owners[each] for each in above if owners.get(each) is not None), None)
