"""What can be seen to be odd in a finished graph, though it is no mistake."""

from __future__ import annotations

from collections import Counter

from modgraph.diagnostics import Report
from modgraph.elaboration import errors
from modgraph.ir import Graph, LossNode, OpNode, OutputNode, RouteNode, RouterNode, ScanNode
from modgraph.ops.loss import Importance


def find_weaknesses(graph: Graph, report: Report) -> None:
    """Warn of weights that no output and no loss depends on."""
    ends = [node.name for node in graph if isinstance(node, OutputNode | LossNode)]
    live = graph.ancestors(ends)
    _find_dead(graph, live, report)
    for scan in graph.of_kind(ScanNode):
        region = scan.region.graph
        records = [result for route in region.of_kind(RouteNode) for result in region.recorded(route).values()]
        ends = [result.node for result in Counter(scan.region.results) - Counter(records)]
        _find_dead(region, region.ancestors(ends if scan.name in live else ()), report)
    if graph.losses:
        _find_unbalanced(graph, report)


def _find_dead(graph: Graph, live: set[str], report: Report) -> None:
    for node in graph:
        if isinstance(node, OpNode) and node.name not in live and node.op.all_weights():
            report.add(errors.Dead(span=node.span, name=node.owner))
        elif isinstance(node, RouteNode) and node.name not in live:
            report.add(errors.Dead(span=node.span, name=graph.pool_of(node).name))


def _find_unbalanced(graph: Graph, report: Report) -> None:
    """Warn of routers that want a balance loss and have none."""
    watched: set[str] = set()
    for graph_ in (part.graph for part in graph.parts()):
        names = {result: name.rpartition(".")[0] for name, result in graph_.records().items()}
        statistics = [node.name for node in graph_.of_kind(OpNode) if isinstance(node.op, Importance)]
        watched |= {names[result] for name in statistics for result in graph_.inputs(name).values() if result in names}
    routers = {router.name: router for part in graph.parts() for router in part.graph.of_kind(RouterNode)}
    for router in routers.values():
        routes = {route.name for part in graph.parts() for route in part.routes_of(router.name)}
        if router.router.balanced and not routes & watched:
            report.add(errors.NoBalance(span=router.span, router=router.name))
