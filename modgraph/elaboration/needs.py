"""The nodes and results that outputs and losses depend on, in scans too."""

from __future__ import annotations

from modgraph.ir import Graph, Needed, Result, ScanNode, needed_in


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
