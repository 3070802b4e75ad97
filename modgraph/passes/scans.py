"""Choose a lowering for each scan: all steps at once where its states are linear recurrences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from modgraph.declare import product
from modgraph.frozen import change_fields
from modgraph.ir import (
    RECURRENCE,
    Change,
    Graph,
    NotAffine,
    Part,
    Recurrence,
    Result,
    ScanNode,
    find_recurrences,
    rewrite_graph,
)
from modgraph.ir.node import Node
from modgraph.passes.infrastructure import Pass

STEPS = "steps"
WIDE_IN_BUNDLE = 128  # numbers of a state; with more, ONNX Runtime takes longer for all steps at once than for its scan


@dataclass(frozen=True)
class LowerScans(Pass):
    """Compute all steps of a scan at once where each state is affine in itself; with the lowering `steps`, nowhere.

    `exportable` leaves wide states to ONNX's scan.
    """

    name: ClassVar[str] = "scans"

    lowering: str | None = None
    exportable: bool = False

    def __call__(self, graph: Graph) -> Graph:
        return rewrite_graph(graph, self.lower) if graph.nodes_of(ScanNode) else graph

    def lower(self, node: Node, part: Part) -> Change:
        """The rewrite rule."""
        if not isinstance(node, ScanNode):
            return node
        return change_fields(node, lowering="" if self.lowering == STEPS else explain_scan(node, self.exportable)[0])


def explain_scan(scan: ScanNode, exportable: bool = False) -> tuple[str, str]:
    """The lowering that a scan has by itself, in a bundle if `exportable`, and why."""
    try:
        found = find_recurrences(scan).each
    except NotAffine as reason:
        return "", f"{STEPS}, one after another; {reason}"
    for each in found if exportable else ():
        size = product(scan.region.graph.type_of(Result(each.state)).shape)
        if each.keeps and not each.is_sum and size > WIDE_IN_BUNDLE:
            why = f"state {_name(each)} has {size:,} numbers, and ONNX Runtime computes wide states faster so"
            return "", f"{STEPS}, one after another; {why}"
    states = "; ".join(map(_explain, found)) or "it has no states"
    return RECURRENCE, f"{RECURRENCE}, all steps at once; {states}"


def _name(each: Recurrence) -> str:
    return each.state.rpartition(".")[2]


def _explain(each: Recurrence) -> str:
    name = _name(each)
    if each.matrix is None:
        kind = "gates" if any(term.factors for term in each.gates) else "constants" if each.gates else "no gates"
        return f"state {name} is affine in itself, number by number ({kind})"
    how = "the delta rule changes" if each.products else "outer products change"
    return f"state {name} is a matrix that {how}, in chunks"


def list_scans(graph: Graph, exportable: bool = False) -> Iterator[tuple[str, str]]:
    """List the scans of a graph lowered for torch, or for a bundle, by name, each with its lowering and why."""
    for scan in (scan for part in graph.parts() for scan in part.graph.nodes_of(ScanNode)):
        lowering, reason = explain_scan(scan, exportable)
        yield scan.name, reason if lowering == scan.lowering else f"{STEPS}, one after another; as requested"
