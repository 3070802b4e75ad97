"""A graph's program as JSON, and back: the format of runs and bundles."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from modgraph.declare import Initial
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, UnreadableGraph, ask
from modgraph.ir.node import InputNode
from modgraph.ir.program.flatten import flatten
from modgraph.ir.program.outline import outline
from modgraph.ir.program.program import DeferredNode, Definition, PlaceNode, Program
from modgraph.ir.stored import fields as readers
from modgraph.ir.stored import nodes
from modgraph.ir.stored.fields import Fields
from modgraph.ir.verify.nodes import verify

FORMAT = 4
INITIAL = nodes.Field("initial", lambda value: None if value is None else readers.initial_of(value))


class NotReadBack(AssertionError):
    """The text or JSON that modgraph writes does not read back as the same value: a fault of modgraph."""


def to_verified_json(graph: Graph) -> dict[str, Any]:
    """Write a graph as JSON. Raises `NotReadBack` if it reads back as another graph or not at all."""
    record = to_json(graph)
    try:
        found = from_json(json.loads(json.dumps(record)))
    except UnreadableGraph as error:
        raise NotReadBack(f'the graph of "{graph.name}" cannot be read back: {error}') from error
    if _facts(found) != _facts(graph):
        raise NotReadBack(f'the graph of "{graph.name}" reads back as another')
    return record


def _facts(graph: Graph) -> tuple[object, ...]:
    """Collect the facts that identify a graph, with the order of nodes, in which noise is sampled."""
    order = [node.name for node in graph if not isinstance(node, InputNode)]
    return graph.name, dict(graph.parameters), order, graph.hash()


def to_json(graph: Graph) -> dict[str, Any]:
    """Write the program of a graph: definitions, the model's body, and the marks that differ from a definition by
    place.

    Spans are left out.
    """
    program = outline(graph)
    return {
        "format": FORMAT,
        "name": program.body.name,
        "parameters": nodes.plain(program.body.parameters),
        "definitions": [
            {
                "name": each.name,
                "kind": each.kind,
                "is": each.author,
                "takes": [*each.takes],
                "axes": sorted(each.axes),
                "members": sorted(each.members),
                "results": nodes.results_to_json(each.results),
                "nodes": _body_to_json(each.graph),
            }
            for each in program.definitions
        ],
        "nodes": _body_to_json(program.body),
        "weights": {
            place: {name: asdict(value) if isinstance(value, Initial) else value for name, value in marks.items()}
            for place, marks in program.weights.items()
        },
    }


def _body_to_json(body: Graph) -> list[Any]:
    deferred, found = {node.placed for node in body.nodes_of(DeferredNode)}, list[Any]()
    for node in body:
        if isinstance(node, PlaceNode):
            found.append({"name": node.placed, "kind": "place"})
        elif not isinstance(node, DeferredNode):
            entry = nodes.body_node_to_json(body, node, _body_to_json)
            found.append(entry | ({"deferred": True} if node.name in deferred else {}))
    return found


def from_json(record: Any) -> Graph:
    """Read the graph of a program. Raises `UnreadableGraph` for any other data."""
    try:
        readers.check_depth(record)
        graph = flatten(_read_program(record))
        verify(graph)
    except InvalidGraph as error:
        raise UnreadableGraph(error.reason, error.node, error.field) from error
    return graph


def _read_program(record: Any) -> Program:
    """Read the program that a record describes. `verify` checks it against the declarations later."""
    fields = Fields(record)
    words = f"is not {FORMAT}, the format that this version reads: train or export the model anew"
    fields.read("format", readers.make_reader(int, words, lambda number: number == FORMAT))
    name = fields.read("name", lambda value: "" if value == "" else readers.name_of(value))
    body, known = Graph(name, fields.read("parameters", readers.constants_of)), nodes.Definitions()
    for each in fields.read("definitions", readers.list_of):
        definition = _read_definition(each, known)
        ask(definition.name not in known, "another definition is called so", definition.name, "name")
        known[definition.name] = definition
    nodes.fill(body, fields.read("nodes", readers.list_of), known)
    weights = fields.read("weights", _read_weights)
    fields.close()
    return Program(body, tuple(known.values()), weights)


def _read_definition(record: Any, known: nodes.Definitions) -> Definition:
    fields = Fields.read_named(record, readers.name_of)
    kind: Any = fields.read("kind", readers.one_of("block", "router", "module", "round"))
    author = fields.read("is", readers.name_of)
    takes, axes, members = (fields.read(each, readers.relative_names_of) for each in ("takes", "axes", "members"))
    graph = Graph(fields.node)
    nodes.fill(graph, fields.read("nodes", readers.list_of), known)
    results = fields.read("results", lambda each: nodes.results_of(each, graph))
    fields.close()
    return Definition(fields.node, kind, author, graph, results, takes, frozenset(axes), frozenset(members))


def _read_weights(value: Any) -> dict[str, dict[str, Any]]:
    ask(isinstance(value, dict), "is no object")
    found: dict[str, dict[str, Any]] = {}
    for place, marks in value.items():
        fields = Fields(marks, place)
        marked = [field for field in (nodes.FROZEN, INITIAL, nodes.GROWN, nodes.LABEL) if field.name in marks]
        found[place] = {field.name: fields.read(field.name, field.read) for field in marked}
        fields.close()
    return found
