"""The nodes and results that outputs and losses depend on."""

from __future__ import annotations

from dataclasses import dataclass

from modgraph.ir import Graph, Result, ScanNode


@dataclass(frozen=True)
class Needed:
    """The nodes of one graph that some results depend on, and these results with all that those nodes read."""

    graph: Graph
    nodes: set[str]
    results: set[Result]


def needed_by(ends: set[Result], graph: Graph) -> list[Needed]:
    """The dependencies of some results, in the graph and in the regions of its scans."""
    whole = needed_in(graph, ends)
    found = [whole]
    read: dict[str, list[int]] = {}
    for result in whole.results:
        read.setdefault(result.node, []).append(result.index)
    for scan in graph.of_kind(ScanNode):
        stacked = {scan.stacked[index] for index in read.get(scan.name, ())}
        found.append(needed_in(scan.region.graph, stacked | set(scan.following) if stacked else set()))
    return found


def needed_in(graph: Graph, ends: set[Result]) -> Needed:
    """The dependencies of some results in their own graph."""
    nodes = graph.ancestors({result.node for result in ends})
    return Needed(graph, nodes, ends | {result for name in nodes for result in graph.inputs(name).values()})
