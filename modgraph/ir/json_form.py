"""The graph as JSON and back: what runs and bundles keep."""

from __future__ import annotations

from dataclasses import asdict
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
    ScanNode,
    TargetNode,
)
from modgraph.ops import Declaration, Initial, TensorType
from modgraph.vocabulary import find_op, find_router

FORMAT = 1


class UnreadableGraph(ValueError):
    """Stored JSON does not describe a graph that this version knows."""


def to_json(graph: Graph) -> dict[str, Any]:
    """The whole graph, nodes in canonical order, the model's inputs in their own; spans are left out."""
    return {**_content(graph), "inputs": list(graph.input_types)}


def _content(graph: Graph) -> dict[str, Any]:
    """What makes two graphs the same, and where they came from."""
    nodes = [_node_to_json(graph, graph[name]) for name in graph.canonical()]
    return {"format": FORMAT, "name": graph.name, "parameters": _plain(graph.parameters), "nodes": nodes}


def from_json(record: Any) -> Graph:
    """The graph that `to_json` described. Raises `UnreadableGraph`."""
    try:
        if record["format"] != FORMAT:
            raise UnreadableGraph(f"format {record['format']!r} is not {FORMAT}, the one this version reads")
        graph = Graph(record["name"], {name: _frozen(value) for name, value in record["parameters"].items()})
        order = {str(name): place for place, name in enumerate(record.get("inputs", ()))}
        for entry in sorted(record["nodes"], key=lambda entry: order.get(entry["name"], len(order))):
            inputs = {slot: Result(node, index) for slot, node, index in entry.get("inputs", ())}
            graph.add(_node_from_json(entry), inputs, entry.get("uses"))
        _check_shared(graph)
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise UnreadableGraph(f"it is damaged or of another version: {error}") from error
    return graph


def _check_shared(graph: Graph) -> None:
    """What a scan shares with the graph around it or with another scan is the same thing."""
    known: dict[str, Node] = {}
    for node in (node for part in graph.parts() for node in part.graph):
        assert not isinstance(node, ScanNode) or node.name in graph, "a scan stands in a scan"
        if isinstance(node, PoolNode | RouterNode):
            assert known.setdefault(node.name, node) == node, f"{node.name} is two things"


def _node_to_json(graph: Graph, node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": node.name, "kind": node.kind}
    entry["types"] = [type_.as_json() for type_ in node.types]
    match node:
        case OpNode():
            entry |= _declaration(node.op)
            entry |= {"owner": node.owner} if node.owner != node.name else {}
            entry |= {"initial": asdict(node.initial)} if node.initial else {}
            entry |= {"frozen": True} if node.frozen else {}
        case RouterNode():
            entry |= _declaration(node.router) | ({"frozen": True} if node.frozen else {})
        case PoolNode():
            entry |= {"size": node.size, "regions": [_content(region) for region in node.regions]}
            entry |= {"grown": node.grown} if node.grown else {}
        case RouteNode():
            entry["lowering"] = node.lowering
        case ScanNode():
            entry |= {"variable": node.variable, "states": [*node.states], "stacked": [*node.stacked]}
            entry["region"] = _content(node.region)
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
            initial = Initial(**entry["initial"]) if "initial" in entry else None
            owner, frozen = entry.get("owner", entry["name"]), entry.get("frozen", False)
            return OpNode(**common, op=op, owner=owner, initial=initial, frozen=frozen)
        case "router":
            router = _known(find_router(entry["is"]), entry)
            return RouterNode(**common, router=router, frozen=entry.get("frozen", False))
        case "pool":
            regions = tuple(from_json(region) for region in entry["regions"])
            assert len(regions) in (1, entry["size"]), "a pool has one region, or one for each module"
            grown = entry.get("grown", 0)
            assert grown in range(entry["size"]), "a pool has grown by fewer modules than it has"
            return PoolNode(**common, size=entry["size"], regions=regions, grown=grown)
        case "route":
            return RouteNode(**common, lowering=entry["lowering"])
        case "scan":
            return _scan_from_json(entry, common)
        case kind:
            simple = {"input": InputNode, "target": TargetNode, "output": OutputNode, "loss": LossNode}
            return simple[kind](**common)


def _scan_from_json(entry: dict[str, Any], common: dict[str, Any]) -> ScanNode:
    region, states, stacked = from_json(entry["region"]), tuple(entry["states"]), tuple(entry["stacked"])
    assert {entry["variable"], *states} <= {*region.input_types}, "a scan's variable and states are its region's inputs"
    assert {*stacked, *(f"next.{state}" for state in states)} == {*region.outputs}, "a scan has its region's outputs"
    assert len(stacked) == len(common["types"]), "a scan has a type for each result"
    return ScanNode(**common, region=region, variable=entry["variable"], states=states, stacked=stacked)


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
