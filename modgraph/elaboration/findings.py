"""What can be seen to be odd in a finished graph, though it is no mistake."""

from __future__ import annotations

from modgraph.diagnostics import Report
from modgraph.elaboration import errors
from modgraph.ir import Graph, LossNode, OpNode, OutputNode, RouteNode


def find_weaknesses(graph: Graph, report: Report) -> None:
    """Warn of weights that no output and no loss depends on."""
    ends = [node.name for node in graph if isinstance(node, OutputNode | LossNode)]
    live = graph.ancestors(ends)
    for node in graph:
        if isinstance(node, OpNode) and node.name not in live and node.op.all_weights():
            report.add(errors.Dead(span=node.span, name=node.owner))
        elif isinstance(node, RouteNode) and node.name not in live:
            report.add(errors.Dead(span=node.span, name=graph.pool_of(node).name))
