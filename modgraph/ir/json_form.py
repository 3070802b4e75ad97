"""The graph as JSON and back: what runs and bundles keep."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

from modgraph.declare import Declaration, Initial, load_extensions
from modgraph.diagnostics import ModgraphError, Note
from modgraph.ir.format_1 import upgraded
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
from modgraph.ir.region import Region
from modgraph.ir.stored import (
    MOST_MODULES,
    UnreadableGraph,
    ask,
    check_depth,
    check_node,
    check_references,
    check_region,
    check_shared,
    flag_of,
    name_of,
    names_of,
    type_of,
    whole_of,
)
from modgraph.types import Misfit
from modgraph.vocabulary import find_op, find_router

FORMAT = 2


def to_json(graph: Graph) -> dict[str, Any]:
    """The whole graph, nodes in canonical order, the model's inputs in their own; spans are left out."""
    return {
        "format": FORMAT,
        "name": graph.name,
        "parameters": _plain(graph.parameters),
        "nodes": nodes_to_json(graph),
        "inputs": list(graph.input_types),
    }


def nodes_to_json(graph: Graph) -> list[Any]:
    """Nodes and edges: what makes two graphs the same."""
    return [_node_to_json(graph, graph[name]) for name in graph.canonical()]


def _region_to_json(region: Region) -> dict[str, Any]:
    results = [[result.node, result.index] for result in region.results]
    return {"arguments": [*region.arguments], "results": results, "nodes": nodes_to_json(region.graph)}


def from_json(record: Any) -> Graph:
    """The graph that `to_json` described. Raises `UnreadableGraph`, for anything else whatever."""
    check_depth(record)
    try:
        graph = _graph(upgraded(record) if record["format"] == 1 else record)
        check_shared(graph)
    except UnreadableGraph:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, Misfit) as error:
        raise UnreadableGraph(f"it is damaged or of another version: {error}") from error
    return graph


def _graph(record: Any) -> Graph:
    if record["format"] != FORMAT:
        raise UnreadableGraph(f"format {record['format']!r} is not {FORMAT}, the one this version reads")
    parameters = {name_of(name): _frozen(value) for name, value in record["parameters"].items()}
    graph = Graph(name_of(record["name"]) if record["name"] else "", parameters)
    order = {name: place for place, name in enumerate(names_of(record.get("inputs", [])))}
    return _filled(graph, sorted(record["nodes"], key=lambda entry: order.get(name_of(entry["name"]), len(order))))


def _filled(graph: Graph, nodes: list[Any]) -> Graph:
    """The graph with the nodes that a record lists."""
    for entry in nodes:
        node = _node_from_json(entry)
        inputs = {slot: Result(source, index) for slot, source, index in entry.get("inputs", ())}
        uses = dict(entry.get("uses", {}))
        ask(len(inputs) == len(entry.get("inputs", ())), f"{node.name} has two slots of one name")
        check_references(graph, node, inputs, uses)
        graph.add(node, inputs, uses)
        check_node(graph, node)
    return graph


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
            entry |= {"size": node.size, "regions": [_region_to_json(region) for region in node.regions]}
            entry |= {"grown": node.grown} if node.grown else {}
        case RouteNode():
            entry |= {"lowering": node.lowering} if node.lowering is not None else {}
        case ScanNode():
            entry |= {"carried": node.carried, "region": _region_to_json(node.region)}
    if inputs := graph.inputs(node.name):
        entry["inputs"] = [[slot, result.node, result.index] for slot, result in inputs.items()]
    if uses := graph.uses(node.name):
        entry["uses"] = uses
    return entry


def _declaration(declaration: Declaration) -> dict[str, Any]:
    return {"is": declaration.name, "settings": _plain(declaration.values())}


def _node_from_json(entry: dict[str, Any]) -> Node:
    common: dict[str, Any] = {"name": name_of(entry["name"]), "types": tuple(map(type_of, entry["types"]))}
    match entry["kind"]:
        case "op":
            op = _known(find_op(entry["is"]), entry)
            initial = _initial(entry["initial"]) if "initial" in entry else None
            owner, frozen = name_of(entry.get("owner", entry["name"])), flag_of(entry.get("frozen", False))
            return OpNode(**common, op=op, owner=owner, initial=initial, frozen=frozen)
        case "router":
            router = _known(find_router(entry["is"]), entry)
            return RouterNode(**common, router=router, frozen=flag_of(entry.get("frozen", False)))
        case "pool":
            size = whole_of(entry["size"], 1, MOST_MODULES)
            grown = whole_of(entry.get("grown", 0), 0, size - 1)
            return PoolNode(
                **common,
                size=size,
                regions=tuple(_region(entry["name"], each) for each in entry["regions"]),
                grown=grown,
            )
        case "route":
            return RouteNode(**common, lowering=name_of(entry["lowering"]) if "lowering" in entry else None)
        case "scan":
            region = _region(entry["name"], entry["region"])
            carried = whole_of(entry["carried"], 0, min(len(region.arguments) - 1, len(region.results) - 1))
            return ScanNode(**common, region=region, carried=carried)
        case kind:
            simple = {"input": InputNode, "target": TargetNode, "output": OutputNode, "loss": LossNode}
            return simple[kind](**common)


def _region(name: str, record: dict[str, Any]) -> Region:
    results = tuple(Result(name_of(source), index) for source, index in record["results"])
    region = Region(_filled(Graph(name), record["nodes"]), names_of(record["arguments"]), results)
    check_region(region)
    return region


def _initial(record: dict[str, Any]) -> Initial:
    initial = Initial(**record)
    sound = initial.kind in ("zeros", "ones", "constant", "normal", "uniform") and initial.fan == ""
    ask(
        sound and type(initial.scale) in (int, float) and math.isfinite(initial.scale),
        "a weight starts in no known way",
    )
    return initial


def _known(declaration: type[Any] | None, entry: dict[str, Any]) -> Any:
    if declaration is None:
        _refuse_broken_extensions(entry)
        raise UnreadableGraph(f'it uses "{entry["is"]}", which this installation does not know')
    settings = declaration.settings()
    values = {}
    for name, value in entry["settings"].items():
        plain = _frozen(value)
        if problem := settings[name].problem(plain):
            raise UnreadableGraph(f'setting "{name}" of "{entry["name"]}" {problem}')
        values[name] = settings[name].convert(plain)
    return declaration(**values)


def _refuse_broken_extensions(entry: dict[str, Any]) -> None:
    """Raises `ModgraphError` where an installed package may declare what is not known, and fails."""
    notes = (Note(text=f'the graph uses "{entry["is"]}"'),)
    if faults := load_extensions():
        raise ModgraphError([replace(fault, notes=notes) for fault in faults])


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _thawed(value) for name, value in values.items()}


def _thawed(value: Any) -> Any:
    if isinstance(value, range):
        return {"range": [value.start, value.stop]}
    return [_thawed(item) for item in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        start, stop = value["range"]
        return range(start, stop)
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
