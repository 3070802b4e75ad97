"""Stores a graph only after it reads back: modgraph never writes a graph that it cannot open."""

from __future__ import annotations

import json
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.invalid import UnreadableGraph
from modgraph.ir.node import InputNode
from modgraph.ir.stored.read import from_json
from modgraph.ir.stored.write import to_json


class NotReadBack(AssertionError):
    """A value does not read back from the text that modgraph would write: a fault of modgraph."""


def stored_form(graph: Graph) -> dict[str, Any]:
    """The graph as JSON. Raises `NotReadBack` where that reads back as another graph, or as none."""
    record = to_json(graph)
    try:
        found = from_json(json.loads(json.dumps(record)))
    except UnreadableGraph as error:
        raise NotReadBack(f'the graph of "{graph.name}" cannot be read back: {error}') from error
    if _facts(found) != _facts(graph):
        raise NotReadBack(f'the graph of "{graph.name}" reads back as another')
    return record


def _facts(graph: Graph) -> tuple[object, ...]:
    """The facts by which graphs are the same, with the order of nodes, in which noise is drawn."""
    order = [node.name for node in graph if not isinstance(node, InputNode)]
    return graph.name, dict(graph.parameters), order, graph.hash()
