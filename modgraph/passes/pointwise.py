"""Refuse what reads tokens other than its own, and has no cache."""

from __future__ import annotations

from typing import NoReturn

from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.ir.node import Node, OpNode, RouteNode, ScanNode
from modgraph.passes.errors import NotIncremental
from modgraph.passes.sink import reads_own_place
from modgraph.types import Axis


def require_pointwise(node: Node, graph: Graph, axis: Axis) -> None:
    """Require that a node reads, of the tokens along an axis, its own alone. Raises `ModgraphError`."""
    inside = [node.region] if isinstance(node, ScanNode) else []
    inside += graph.pool_of(node).regions if isinstance(node, RouteNode) else []
    for region in inside:
        for each in region.graph:
            require_pointwise(each, region.graph, axis)
    if not isinstance(node, OpNode | RouteNode):
        return
    signature, declared = graph.signature(node), node.op if isinstance(node, OpNode) else graph.declaration_of(node)
    if not any(axis in type_.shape for type_ in signature.operands):
        return
    values = None if isinstance(node, OpNode) else 1  # records of routes are left alone
    if not reads_own_place(declared, signature, axis.name, values):
        way_out = "compute it in a scan along the tokens, or from an axis that is read a second time"
        raise_impossible(node, "it reads several tokens, and no cache is known for it", way_out)


def raise_impossible(node: Node, reason: str, way_out: str) -> NoReturn:
    what = f'op {node.op.name} ("{node.name}")' if isinstance(node, OpNode) else f'{node.kind} "{node.name}"'
    raise ModgraphError([NotIncremental(span=node.span, what=what, reason=reason, way_out=way_out)])
