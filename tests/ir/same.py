"""What must be the same of two graphs, and how it is checked that programs, text and JSON keep it."""

from __future__ import annotations

import json

from modgraph.ir import Call, Graph, flat_to_json, flatten, from_json, outline, to_json, to_text, weights_of
from modgraph.ir.program.program import CallNode, Program
from modgraph.ir.text.parse import parse_text
from modgraph.ir.text.write import WIDTH, print_program


def facts(graph: Graph) -> list[str]:
    """Name, parameters, inputs, and every node with its edges in their order, as text: -0.0 is not 0.0."""
    record = flat_to_json(graph)
    head = [json.dumps({**record, "nodes": []}), f"weights {[weight.name for weight in weights_of(graph)]}"]
    return [*head, *map(json.dumps, record["nodes"])]


def spans(graph: Graph, names: set[str] | None = None) -> dict[str, str]:
    """Where each node was written, in regions too; of the nodes in some calls, only that of the first call is known."""
    nodes = [node for part in graph.parts() for node in part.graph]
    outside = {node.name for node in nodes if node.within is None} if names is None else names
    return {node.name: str(node.span) for node in nodes if node.name in outside}


def calls_of(graph: Graph) -> set[Call]:
    """The calls in which nodes stand, in regions too."""
    nodes = [node for part in graph.parts() for node in part.graph if node.within is not None]
    return {call for node in nodes if node.within for call in node.within.chain()}


def count_calls(program: Program) -> int:
    """How many uses of definitions a program has: those of a definition count for each use of it."""
    known: dict[str, int] = {}
    for each in program.definitions:
        known[each.name] = _uses(each.graph, known)
    return _uses(program.body, known)


def _uses(graph: Graph, known: dict[str, int]) -> int:
    calls = (node for part in graph.parts() for node in part.graph if isinstance(node, CallNode))
    return sum(1 + known[node.definition.name] for node in calls)


def is_too_long(line: str) -> bool:
    """Whether a line could have been broken: names may be of any length."""
    return len(line) > WIDTH and max(map(len, line.split())) < WIDTH // 2


def assert_kept(graph: Graph) -> Program:
    """The program of a graph gives the graph again, and so do its text and JSON; no call is lost."""
    program = outline(graph)
    flat, text = flatten(program), to_text(graph)
    assert facts(flat) == facts(graph), "the program gives another graph"
    outside = spans(graph)
    assert spans(flat, {*outside}) == outside, "the program says otherwise where nodes were written"
    assert print_program(outline(flat)) == text, "the graph of the program has another program"
    for again in (from_json(json.loads(json.dumps(to_json(graph)))), parse_text(text)):
        assert facts(again) == facts(graph), "what is stored is another graph"
        assert to_text(again) == text, "what is stored has another text"
    assert count_calls(program) == len(calls_of(graph)), "a call is dissolved"
    assert not [line for line in text.splitlines() if is_too_long(line)], "a line is too long"
    return program
