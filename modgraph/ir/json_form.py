"""The graph as JSON and back: what runs and bundles keep."""

from __future__ import annotations

from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.node import (
    InputNode,
    LossNode,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    Result,
    RouteNode,
    RouterNode,
    TargetNode,
)
from modgraph.ops import Declaration, TensorType
from modgraph.vocabulary import find_op, find_router

FORMAT = 1


class UnreadableGraph(ValueError):
    """Stored JSON does not describe a graph that this version knows."""


def to_json(graph: Graph) -> dict[str, Any]:
    """The whole graph, nodes in canonical order; spans are left out."""
    nodes = [_node_to_json(graph, graph[name]) for name in graph.canonical()]
    return {"format": FORMAT, "name": graph.name, "parameters": _plain(graph.parameters), "nodes": nodes}


def from_json(record: Any) -> Graph:
    """The graph that `to_json` described. Raises `UnreadableGraph`."""
    try:
        if record["format"] != FORMAT:
            raise UnreadableGraph(f"format {record['format']!r} is not {FORMAT}, the one this version reads")
        graph = Graph(record["name"], {name: _frozen(value) for name, value in record["parameters"].items()})
        for entry in record["nodes"]:
            inputs = {slot: Result(node, index) for slot, node, index in entry.get("inputs", ())}
            graph.add(_node_from_json(entry), inputs, entry.get("uses"))
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise UnreadableGraph(f"it is damaged or of another version: {error}") from error
    return graph


def _node_to_json(graph: Graph, node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": node.name, "kind": node.kind}
    entry["types"] = [type_.as_json() for type_ in node.types]
    match node:
        case OpNode():
            entry |= _declaration(node.op)
            if node.owner != node.name:
                entry["owner"] = node.owner
        case RouterNode():
            entry |= _declaration(node.router)
        case PoolNode():
            entry |= {"size": node.size, "region": to_json(node.region)}
        case RouteNode():
            entry["lowering"] = node.lowering
    if inputs := graph.inputs(node.name):
        entry["inputs"] = [[slot, result.node, result.index] for slot, result in inputs.items()]
    if uses := graph.uses(node.name):
        entry["uses"] = uses
    return entry


def _declaration(declaration: Declaration) -> dict[str, Any]:
    return {"is": declaration.name, "settings": _plain(declaration.values())}


def _node_from_json(entry: dict[str, Any]) -> Node:
    common: dict[str, Any] = {
        "name": entry["name"],
        "types": tuple(TensorType.from_json(record) for record in entry["types"]),
    }
    match entry["kind"]:
        case "op":
            op = _known(find_op(entry["is"]), entry)
            return OpNode(**common, op=op, owner=entry.get("owner", entry["name"]))
        case "router":
            return RouterNode(**common, router=_known(find_router(entry["is"]), entry))
        case "pool":
            return PoolNode(**common, size=entry["size"], region=from_json(entry["region"]))
        case "route":
            return RouteNode(**common, lowering=entry["lowering"])
        case kind:
            simple = {"input": InputNode, "target": TargetNode, "output": OutputNode, "loss": LossNode}
            return simple[kind](**common)


def _known(declaration: type[Any] | None, entry: dict[str, Any]) -> Any:
    if declaration is None:
        raise UnreadableGraph(f'it uses "{entry["is"]}", which this installation does not know')
    settings = declaration.settings()
    values = {}
    for name, value in entry["settings"].items():
        values[name] = settings[name].convert(_frozen(value))
        if problem := settings[name].problem(values[name]):
            raise UnreadableGraph(f'setting "{name}" of "{entry["name"]}" {problem}')
    return declaration(**values)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _thawed(value) for name, value in values.items()}


def _thawed(value: Any) -> Any:
    return [_thawed(item) for item in value] if isinstance(value, tuple | range) else value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
