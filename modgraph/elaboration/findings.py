"""What can be seen to be odd in a finished graph, though it is no mistake."""

from __future__ import annotations

from modgraph.diagnostics import Report
from modgraph.elaboration import errors
from modgraph.ir import Graph, LossNode, OpNode, OutputNode, RouteNode, RouterNode
from modgraph.ops.loss import Importance


def find_weaknesses(graph: Graph, report: Report) -> None:
    """Warn of weights that no output and no loss depends on."""
    ends = [node.name for node in graph if isinstance(node, OutputNode | LossNode)]
    live = graph.ancestors(ends)
    for node in graph:
        if isinstance(node, OpNode) and node.name not in live and node.op.all_weights():
            report.add(errors.Dead(span=node.span, name=node.owner))
        elif isinstance(node, RouteNode) and node.name not in live:
            report.add(errors.Dead(span=node.span, name=graph.pool_of(node).name))
    if graph.losses:
        _find_unbalanced(graph, report)


def _find_unbalanced(graph: Graph, report: Report) -> None:
    """Warn of routers that want a balance loss and have none."""
    statistics = [node.name for node in graph.of_kind(OpNode) if isinstance(node.op, Importance)]
    watched = {result.node for name in statistics for result in graph.inputs(name).values()}
    for router in graph.of_kind(RouterNode):
        routes = {route.name for route in graph.routes_of(router.name)}
        if router.router.balanced and not routes & watched:
            report.add(errors.NoBalance(span=router.span, router=router.name))
