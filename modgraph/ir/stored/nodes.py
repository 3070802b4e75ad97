"""The nodes of a graph as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from modgraph.declare import Declaration
from modgraph.ir.graph import Graph
from modgraph.ir.node import (
    DecisionNode,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    RouteNode,
    RouterNode,
    ScanNode,
    TargetNode,
)
from modgraph.ir.region import Region
from modgraph.ir.stored.decisions import decision_to_json, text_to_json
from modgraph.routers import RouterText


def flat_to_json(graph: Graph) -> dict[str, Any]:
    """Every node of a graph, in the order in which noise is drawn, as if its author had written no definition."""
    nodes = [node_with_edges(graph, node, own_order=True) for node in graph]
    inputs = list(graph.input_types)
    return {"name": graph.name, "parameters": plain(graph.parameters), "nodes": nodes, "inputs": inputs}


def nodes_to_json(graph: Graph) -> list[Any]:
    """Nodes and edges in canonical order: what makes two graphs the same."""
    return [node_with_edges(graph, graph[name]) for name in graph.canonical()]


def _region_to_json(region: Region, own_order: bool) -> dict[str, Any]:
    graph, results = region.graph, [[result.node, result.index] for result in region.results]
    nodes = [node_with_edges(graph, node, own_order) for node in graph] if own_order else nodes_to_json(graph)
    return {"arguments": [*region.arguments], "results": results, "nodes": nodes}


def node_with_edges(graph: Graph, node: Node, own_order: bool = False) -> dict[str, Any]:
    """A node with its regions and what it reads."""
    entry = node_to_json(node)
    match node:
        case PoolNode():
            entry["regions"] = [_region_to_json(each, own_order) for each in node.regions]
        case ScanNode():
            entry["region"] = _region_to_json(node.region, own_order)
    if inputs := graph.inputs(node.name):
        entry["inputs"] = [[slot, result.node, result.index] for slot, result in inputs.items()]
    if lengths := graph.lengths(node.name):
        entry["lengths"] = [[axis, result.node, result.index] for axis, result in lengths.items()]
    if uses := graph.uses(node.name):
        entry["uses"] = uses
    return entry


def node_to_json(node: Node) -> dict[str, Any]:
    """A node by itself: neither its regions nor what it reads."""
    entry: dict[str, Any] = {"name": node.name, "kind": node.kind}
    entry["types"] = [type_.as_json() for type_ in node.types]
    match node:
        case OpNode():
            entry |= _declaration(node.op)
            entry |= {"owner": node.owner} if node.owner != node.name else {}
            entry |= {"initial": asdict(node.initial)} if node.initial else {}
            entry |= {"frozen": True} if node.frozen else {}
        case RouterNode(router=router):
            entry |= text_to_json(router) if isinstance(router, RouterText) else _declaration(router)
            entry |= {"frozen": True} if node.frozen else {}
        case DecisionNode():
            entry |= decision_to_json(node)
        case PoolNode():
            entry |= {"size": node.size}
            entry |= {"grown": node.grown} if node.grown else {}
            entry |= {"shares": node.shares} if node.shares else {}
            entry |= {"inside": node.inside} if node.inside else {}
        case TargetNode():
            entry |= {"grown": node.grown} if node.grown else {}
        case RouteNode():
            entry |= {"lowering": node.lowering} if node.lowering is not None else {}
            entry |= {"label": node.label} if node.label else {}
        case OutputNode():
            entry |= {"label": node.label}
        case ScanNode():
            entry |= {"carried": node.carried}
    return entry


def _declaration(declaration: Declaration) -> dict[str, Any]:
    return {"is": declaration.name, "settings": plain(declaration.values())}


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Constants by name."""
    return {name: thawed(value) for name, value in values.items()}


def thawed(value: Any) -> Any:
    if isinstance(value, range):
        return {"range": [value.start, value.stop]}
    return [thawed(item) for item in value] if isinstance(value, tuple) else value
