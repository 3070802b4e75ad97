"""A graph's program as JSON: what runs and bundles keep. `json_read` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from modgraph.declare import Initial
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, PoolNode, ScanNode
from modgraph.ir.program.outline import outline
from modgraph.ir.program.program import CallNode, Definition, LateNode, PlaceNode, Program
from modgraph.ir.region import Region
from modgraph.ir.stored.nodes import node_to_json, plain

FORMAT = 3


def to_json(graph: Graph) -> dict[str, Any]:
    """The program of a graph; spans are left out."""
    return program_to_json(outline(graph))


def program_to_json(program: Program) -> dict[str, Any]:
    """Definitions, the model's body, and by the place of a node what differs there from its definition."""
    return {
        "format": FORMAT,
        "name": program.body.name,
        "parameters": plain(program.body.parameters),
        "definitions": [_definition(each) for each in program.definitions],
        "nodes": _body(program.body),
        "weights": {place: _marks(marks) for place, marks in program.weights.items()},
    }


def _definition(definition: Definition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "kind": definition.kind,
        "is": definition.author,
        "takes": [*definition.takes],
        "axes": sorted(definition.axes),
        "members": sorted(definition.members),
        "results": [[each.node, each.index] for each in definition.results],
        "nodes": _body(definition.graph),
    }


def _body(body: Graph) -> list[Any]:
    late = {node.placed for node in body.of_kind(LateNode)}
    nodes = (node for node in body if not isinstance(node, LateNode))
    return [_entry(body, node) | ({"late": True} if node.name in late else {}) for node in nodes]


def _entry(body: Graph, node: Node) -> dict[str, Any]:
    entry: dict[str, Any]
    match node:
        case PlaceNode():
            return {"name": node.placed, "kind": "place"}
        case CallNode():
            entry = {"name": node.name, "kind": "call", "is": node.definition.name, "names": [*node.names]}
            entry |= {} if node.key is None else {"key": node.key}
            entry |= {"weights": node.weights} if node.weights else {}
        case PoolNode():
            entry = node_to_json(node) | {"regions": [_region(each) for each in node.regions]}
        case ScanNode():
            entry = node_to_json(node) | {"region": _region(node.region)}
        case _:
            entry = node_to_json(node)
    if inputs := body.inputs(node.name):
        entry["inputs"] = [[slot, result.node, result.index] for slot, result in inputs.items()]
    if uses := body.uses(node.name):
        entry["uses"] = dict(uses)
    return entry


def _region(region: Region) -> dict[str, Any]:
    results = [[result.node, result.index] for result in region.results]
    return {"arguments": [*region.arguments], "results": results, "nodes": _body(region.graph)}


def _marks(marks: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asdict(value) if isinstance(value, Initial) else value for name, value in marks.items()}
