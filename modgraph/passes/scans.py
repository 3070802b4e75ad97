"""Choose a lowering for each scan: all steps at once where its states are linear recurrences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import (
    RECURRENCE,
    Change,
    Graph,
    NotAffine,
    Part,
    Recurrence,
    ScanNode,
    find_recurrences,
    rewrite_graph,
)
from modgraph.ir.node import Node
from modgraph.passes.infrastructure import Pass

STEPS = "steps"


@dataclass(frozen=True)
class LowerScans(Pass):
    """Compute all steps of a scan at once where each state is affine in itself; with the lowering `steps`, nowhere."""

    name: ClassVar[str] = "scans"

    lowering: str | None = None

    def __call__(self, graph: Graph) -> Graph:
        return rewrite_graph(graph, self.lower) if graph.nodes_of(ScanNode) else graph

    def lower(self, node: Node, part: Part) -> Change:
        """The rewrite rule."""
        if not isinstance(node, ScanNode):
            return node
        return replace(node, lowering="" if self.lowering == STEPS else explain_scan(node)[0])


def explain_scan(scan: ScanNode) -> tuple[str, str]:
    """The lowering that a scan may have, and why."""
    try:
        found = find_recurrences(scan).each
    except NotAffine as reason:
        return "", f"{STEPS}, one after another; {reason}"
    states = "; ".join(map(_explain, found)) or "it has no states"
    return RECURRENCE, f"{RECURRENCE}, all steps at once; {states}"


def _explain(each: Recurrence) -> str:
    name = each.state.rpartition(".")[2]
    if each.matrix is None:
        kind = "gates" if any(term.factors for term in each.gates) else "constants" if each.gates else "no gates"
        return f"state {name} is affine in itself, number by number ({kind})"
    how = "the delta rule changes" if each.products else "outer products change"
    return f"state {name} is a matrix that {how}, in chunks"


def list_scans(graph: Graph) -> Iterator[tuple[str, str]]:
    """List the scans of a lowered graph by name, each with its lowering and why."""
    for scan in (scan for part in graph.parts() for scan in part.graph.nodes_of(ScanNode)):
        lowering, reason = explain_scan(scan)
        yield scan.name, reason if lowering == scan.lowering else f"{STEPS}, one after another; as requested"
