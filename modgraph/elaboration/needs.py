"""What outputs and losses depend on."""

from __future__ import annotations

from dataclasses import dataclass

from modgraph.ir import Graph, Result, ScanNode


@dataclass(frozen=True)
class Needed:
    """What some ends depend on, in one graph: its nodes, and the results that these read or that are ends."""

    graph: Graph
    nodes: set[str]
    results: set[Result]


def needed_by(ends: set[Result], graph: Graph) -> list[Needed]:
    """What some results depend on, in the graph and in the regions of its scans."""
    whole = needed_in(graph, ends)
    found = [whole]
    for scan in graph.of_kind(ScanNode):
        stacked = {scan.stacked[result.index] for result in whole.results if result.node == scan.name}
        found.append(needed_in(scan.region.graph, stacked | set(scan.following) if stacked else set()))
    return found


def needed_in(graph: Graph, ends: set[Result]) -> Needed:
    nodes = graph.ancestors({result.node for result in ends})
    return Needed(graph, nodes, ends | {result for name in nodes for result in graph.inputs(name).values()})
