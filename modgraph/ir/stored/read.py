"""Reads a program from JSON: what cannot be a node is refused here, what is not as its declaration says by `verify`."""

from __future__ import annotations

from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, UnreadableGraph, ask
from modgraph.ir.program.flatten import flatten
from modgraph.ir.program.program import Definition, Program
from modgraph.ir.stored.fields import (
    Fields,
    check_depth,
    constants_of,
    expect,
    flag_of,
    initial_of,
    list_of,
    name_of,
    one_of,
    relative_name_of,
    relative_names_of,
    whole_of,
)
from modgraph.ir.stored.read_nodes import MOST_PLACES, Definitions, fill, results_of
from modgraph.ir.stored.write import FORMAT
from modgraph.ir.verify.nodes import verify

KINDS = ("block", "router", "module", "round")


def from_json(record: Any) -> Graph:
    """The graph whose program `to_json` described. Raises `UnreadableGraph`, for anything else whatever."""
    try:
        check_depth(record)
        graph = flatten(read_program(record))
        verify(graph)
    except InvalidGraph as error:
        raise UnreadableGraph(error.reason, error.node, error.field) from error
    return graph


def read_program(record: Any) -> Program:
    """The program that a record describes. Raises `InvalidGraph` for what can be none."""
    fields = Fields(record)
    fields.read("format", _check_format)
    body = Graph(fields.read("name", _model_name), fields.read("parameters", constants_of))
    known: Definitions = {}
    for each in fields.read("definitions", list_of):
        definition = _definition(each, known)
        ask(definition.name not in known, "another definition is called so", definition.name, "name")
        known[definition.name] = definition
    fill(body, fields.read("nodes", list_of), known)
    weights = fields.read("weights", _weights)
    fields.close()
    return Program(body, tuple(known.values()), weights)


def _check_format(number: Any) -> None:
    known = type(number) is int and number == FORMAT
    expect(known, number, f"is not {FORMAT}, the format that this version reads: train or export the model anew")


def _model_name(value: Any) -> str:
    return "" if value == "" else name_of(value)


def _definition(record: Any, known: Definitions) -> Definition:
    name = Fields(record).read("name", name_of)
    fields = Fields({key: value for key, value in record.items() if key != "name"}, name)
    kind, author = fields.read("kind", one_of(*KINDS)), fields.read("is", name_of)
    lists = {each: fields.read(each, relative_names_of) for each in ("takes", "axes", "members")}
    graph = Graph(name)
    fill(graph, fields.read("nodes", list_of), known)
    results = fields.read("results", lambda each: results_of(each, graph))
    fields.close()
    facts: Any = {"axes": frozenset(lists["axes"]), "members": frozenset(lists["members"])}
    return Definition(name, kind, author, graph, results, lists["takes"], **facts)  # type: ignore[arg-type]


def _weights(value: Any) -> dict[str, dict[str, Any]]:
    """What differs from a definition, by the place of a node."""
    ask(isinstance(value, dict), "is no object")
    return {place: _marks(place, marks) for place, marks in value.items()}


def _marks(place: str, value: Any) -> dict[str, Any]:
    fields = Fields(value, place)
    readers: dict[str, Any] = {"frozen": flag_of, "initial": _initial_or_none, "grown": whole_of(0, MOST_PLACES)}
    readers["label"] = relative_name_of
    found = {name: fields.read(name, reader) for name, reader in readers.items() if name in value}
    fields.close()
    return found


def _initial_or_none(value: Any) -> Any:
    return None if value is None else initial_of(value)
