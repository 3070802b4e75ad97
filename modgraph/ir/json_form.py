"""The graph as JSON: what runs and bundles keep. `json_read` reads it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from modgraph.declare import Declaration
from modgraph.ir.decision_form import decision_to_json, text_to_json
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
from modgraph.routers import RouterText

FORMAT = 2


def to_json(graph: Graph) -> dict[str, Any]:
    """The whole graph; spans are left out.

    Nodes stand in their own order: what is made of the graph again draws its noise in the same.
    """
    return {
        "format": FORMAT,
        "name": graph.name,
        "parameters": _plain(graph.parameters),
        "nodes": [_node_to_json(graph, node, own_order=True) for node in graph],
        "inputs": list(graph.input_types),
    }


def nodes_to_json(graph: Graph) -> list[Any]:
    """Nodes and edges in canonical order: what makes two graphs the same."""
    return [_node_to_json(graph, graph[name]) for name in graph.canonical()]


def _region_to_json(region: Region, own_order: bool) -> dict[str, Any]:
    graph, results = region.graph, [[result.node, result.index] for result in region.results]
    nodes = [_node_to_json(graph, node, own_order) for node in graph] if own_order else nodes_to_json(graph)
    return {"arguments": [*region.arguments], "results": results, "nodes": nodes}


def _node_to_json(graph: Graph, node: Node, own_order: bool = False) -> dict[str, Any]:
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
            entry |= {"size": node.size, "regions": [_region_to_json(each, own_order) for each in node.regions]}
            entry |= {"grown": node.grown} if node.grown else {}
            entry |= {"shares": node.shares} if node.shares else {}
            entry |= {"inside": node.inside} if node.inside else {}
        case TargetNode():
            entry |= {"grown": node.grown} if node.grown else {}
        case RouteNode():
            entry |= {"lowering": node.lowering} if node.lowering is not None else {}
        case OutputNode():
            entry |= {"label": node.label}
        case ScanNode():
            entry |= {"carried": node.carried, "region": _region_to_json(node.region, own_order)}
    if inputs := graph.inputs(node.name):
        entry["inputs"] = [[slot, result.node, result.index] for slot, result in inputs.items()]
    if lengths := graph.lengths(node.name):
        entry["lengths"] = [[axis, result.node, result.index] for axis, result in lengths.items()]
    if uses := graph.uses(node.name):
        entry["uses"] = uses
    return entry


def _declaration(declaration: Declaration) -> dict[str, Any]:
    return {"is": declaration.name, "settings": _plain(declaration.values())}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: thawed(value) for name, value in values.items()}


def thawed(value: Any) -> Any:
    if isinstance(value, range):
        return {"range": [value.start, value.stop]}
    return [thawed(item) for item in value] if isinstance(value, tuple) else value
