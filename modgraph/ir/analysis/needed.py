"""What results depend on, and what routers decide on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from modgraph.ir.graph import Graph
from modgraph.ir.node import DecisionNode, Result
from modgraph.ir.part import Part


@dataclass(frozen=True)
class Needed:
    """The nodes of one graph that some results, the `ends`, depend on, and these results with all that those nodes
    read."""

    graph: Graph
    ends: set[Result]
    nodes: set[str]
    results: set[Result]


def needed_in(graph: Graph, ends: Iterable[Result]) -> Needed:
    """The dependencies of some results in their own graph. Where a route is needed, so is all that its router
    decides."""
    decisions = decisions_by_result(graph)
    nodes, results = set[str](), {*ends}
    pending = [*results]
    while pending:
        result = pending.pop()
        for name in [each for each in (result.node, *decisions.get(result, ())) if each not in nodes]:
            nodes.add(name)
            for read in graph.inputs(name).values():
                if read not in results:
                    results.add(read)
                    pending.append(read)
            pending += graph.lengths(name).values()
            pending += map(Result, graph.uses(name).values())
    return Needed(graph, {*ends}, nodes, results)


def decisions_by_result(graph: Graph) -> dict[Result, list[str]]:
    """The decisions whose value or record a result is."""
    found: dict[Result, list[str]] = {}
    for each in Part(graph).decisions():
        if isinstance(each.node, DecisionNode):
            for result in dict.fromkeys((each.value, *each.inside.values())):
                found.setdefault(result, []).append(each.name)
    return found
