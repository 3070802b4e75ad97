"""The nodes of a graph as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    Result,
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
    inputs = list(graph.input_types)
    return {"name": graph.name, "parameters": plain(graph.parameters), "nodes": _in_own_order(graph), "inputs": inputs}


def nodes_to_json(graph: Graph) -> list[Any]:
    """Nodes and edges in canonical order: what makes two graphs the same."""
    return [node_with_edges(graph, graph[name]) for name in graph.canonical()]


def _in_own_order(graph: Graph) -> list[Any]:
    return [node_with_edges(graph, node, _in_own_order) for node in graph]


def node_with_edges(graph: Graph, node: Node, nodes: Callable[[Graph], list[Any]] = nodes_to_json) -> dict[str, Any]:
    """A node with what it reads, and its regions, whose nodes `nodes` lists."""
    return node_to_json(node) | regions_to_json(node, nodes) | edges_to_json(graph, node)


def regions_to_json(node: Node, nodes: Callable[[Graph], list[Any]]) -> dict[str, Any]:
    def region_to_json(region: Region) -> dict[str, Any]:
        return {
            "arguments": [*region.arguments],
            "results": results_to_json(region.results),
            "nodes": nodes(region.graph),
        }

    match node:
        case PoolNode():
            return {"regions": [*map(region_to_json, node.regions)]}
        case ScanNode():
            return {"region": region_to_json(node.region)}
        case _:
            return {}


def edges_to_json(graph: Graph, node: Node) -> dict[str, Any]:
    """What a node reads."""
    relations = {"inputs": graph.inputs(node.name), "lengths": graph.lengths(node.name)}
    edges = {
        relation: [[slot, result.node, result.index] for slot, result in found.items()]
        for relation, found in relations.items()
        if found
    }
    uses = graph.uses(node.name)
    return edges | ({"uses": dict(uses)} if uses else {})


def results_to_json(results: Iterable[Result]) -> list[Any]:
    return [[result.node, result.index] for result in results]


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
