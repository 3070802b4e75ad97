"""A graph's program as JSON: what runs and bundles keep. `json_read` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from modgraph.declare import Initial
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node
from modgraph.ir.program.outline import outline
from modgraph.ir.program.program import CallNode, DeferredNode, Definition, PlaceNode, Program
from modgraph.ir.stored.nodes import edges_to_json, node_with_edges, plain, results_to_json

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
        "results": results_to_json(definition.results),
        "nodes": _body(definition.graph),
    }


def _body(body: Graph) -> list[Any]:
    deferred = {node.placed for node in body.of_kind(DeferredNode)}
    nodes = (node for node in body if not isinstance(node, DeferredNode))
    return [_entry(body, node) | ({"deferred": True} if node.name in deferred else {}) for node in nodes]


def _entry(body: Graph, node: Node) -> dict[str, Any]:
    if isinstance(node, PlaceNode):
        return {"name": node.placed, "kind": "place"}
    if not isinstance(node, CallNode):
        return node_with_edges(body, node, _body)
    entry: dict[str, Any] = {"name": node.name, "kind": "call", "is": node.definition.name, "names": [*node.names]}
    entry |= {} if node.key is None else {"key": node.key}
    return entry | ({"weights": node.weights} if node.weights else {}) | edges_to_json(body, node)


def _marks(marks: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asdict(value) if isinstance(value, Initial) else value for name, value in marks.items()}
