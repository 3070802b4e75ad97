"""Reads a graph from JSON: what cannot be a node is refused here, what is not as its declaration says by `verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from modgraph.declare import Declaration, load_extensions
from modgraph.diagnostics import ModgraphError, Note
from modgraph.ir.decision_form import read_decision, read_text
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, UnreadableGraph, ask
from modgraph.ir.json_form import FORMAT
from modgraph.ir.node import (
    GrowthNode,
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
    Fields,
    check_depth,
    constants_of,
    expect,
    flag_of,
    initial_of,
    list_of,
    name_of,
    names_of,
    types_of,
    whole_of,
)
from modgraph.ir.verify import verify
from modgraph.types import TensorType
from modgraph.vocabulary import find_op, find_router

MOST_PLACES = 2**31  # results of a node, or arguments of a region
SIMPLE = {"input": InputNode, "loss": LossNode, "growth": GrowthNode}


def from_json(record: Any) -> Graph:
    """The graph that `to_json` described. Raises `UnreadableGraph`, for anything else whatever."""
    try:
        check_depth(record)
        graph = _graph(record)
        verify(graph)
    except InvalidGraph as error:
        raise UnreadableGraph(error.reason, error.node, error.field) from error
    return graph


def _graph(record: Any) -> Graph:
    fields = Fields(record)
    fields.read("format", _check_format)
    graph = Graph(fields.read("name", _model_name), fields.read("parameters", constants_of))
    entries = [_entry(each) for each in fields.read("nodes", list_of)]
    inputs = fields.read("inputs", names_of)
    fields.close()
    order = {name: position for position, name in enumerate(inputs)}
    _fill(graph, sorted(entries, key=lambda entry: order.get(entry.node, len(order))))
    ask(tuple(graph.input_types) == inputs, "does not list the inputs of the graph", field="inputs")
    return graph


def _check_format(number: Any) -> None:
    known = type(number) is int and number == FORMAT
    expect(known, number, f"is not {FORMAT}, the format that this version reads: train or export the model anew")


def _model_name(value: Any) -> str:
    return "" if value == "" else name_of(value)


def _entry(record: Any) -> Fields:
    """The fields of a node, which know its name."""
    name = Fields(record).read("name", name_of)
    return Fields({key: value for key, value in record.items() if key != "name"}, name)


def _fill(graph: Graph, entries: list[Fields]) -> None:
    """Add the nodes that a record lists."""
    for fields in entries:
        node = _node(fields)
        inputs = fields.read("inputs", _inputs, {})
        uses = fields.read("uses", _uses, {})
        lengths = fields.read("lengths", _inputs, {})
        fields.close()
        ask(node.name not in graph, "another node is called so", node.name, "name")
        for result in inputs.values():
            ask(_is_there(graph, result), f"it reads {result}, which is not there before it", node.name, "inputs")
        for result in lengths.values():
            ask(_is_there(graph, result), f"it is told {result}, which is not there before it", node.name, "lengths")
        for used in uses.values():
            ask(used in graph, f"it uses {used}, which is not there before it", node.name, "uses")
        graph.add(node, inputs, uses, lengths)


def _is_there(graph: Graph, result: Result) -> bool:
    return result.node in graph and result.index < len(graph[result.node].types)


def _inputs(value: Any) -> dict[str, Result]:
    edges = [*map(list_of, list_of(value))]
    ask(all(len(edge) == 3 for edge in edges), "it is no list of slots, each with a node and a number")
    inputs = {name_of(slot): _result(source) for slot, *source in edges}
    ask(len(inputs) == len(edges), "two slots have one name")
    return inputs


def _result(value: Any) -> Result:
    ask(isinstance(value, list) and len(value) == 2, "a source is no node with a number")
    return Result(name_of(value[0]), whole_of(0, MOST_PLACES)(value[1]))


def _uses(value: Any) -> dict[str, str]:
    ask(isinstance(value, dict), "is no object")
    return {name_of(role): name_of(used) for role, used in value.items()}


def _node(fields: Fields) -> Node:
    common: dict[str, Any] = {"name": fields.node, "types": fields.read("types", types_of)}
    match fields.read("kind", name_of):
        case "op":
            owner, initial = fields.read("owner", name_of, fields.node), fields.read("initial", initial_of, None)
            return OpNode(**common, op=_declared(fields, find_op), owner=owner, initial=initial, frozen=_frozen(fields))
        case "router":
            router = read_text(fields) if fields.has("text") else _declared(fields, find_router)
            return RouterNode(**common, router=router, frozen=_frozen(fields))
        case "decision":
            return read_decision(fields, common)
        case "pool":
            size = fields.read("size", whole_of(1, MOST_MODULES))
            regions = fields.read("regions", lambda each: tuple(_region(fields.node, one) for one in list_of(each)))
            grown, shares = fields.read("grown", whole_of(0, size - 1), 0), fields.read("shares", name_of, "")
            inside = fields.read("inside", name_of, "")
            return PoolNode(**common, size=size, regions=regions, grown=grown, shares=shares, inside=inside)
        case "route":
            return RouteNode(**common, lowering=fields.read("lowering", name_of, None))
        case "scan":
            region = fields.read("region", lambda each: _region(fields.node, each))
            return ScanNode(**common, region=region, carried=fields.read("carried", whole_of(0, MOST_PLACES)))
        case "output":
            return OutputNode(**common, label=fields.read("label", name_of))
        case "target":
            _has_value(common, fields)
            return TargetNode(**common, grown=fields.read("grown", _grown(common["types"]), 0))
        case kind:
            ask(kind in SIMPLE, f'"{kind}" is no kind of node', fields.node, "kind")
            _has_value(common, fields, given=kind == "input")
            return SIMPLE[kind](**common)


def _has_value(common: Mapping[str, Any], fields: Fields, given: bool = True) -> None:
    """A node that is given has one type, another of these none."""
    ask(len(common["types"]) == given, f"it has {'one type' if given else 'no value'}", fields.node, "types")


def _grown(types: tuple[TensorType, ...]) -> Callable[[Any], int]:
    """A reader of how many of a label's classes were added: of those of an axis that has a name."""
    (type_,) = types
    return whole_of(0, (type_.size or 1) - 1 if type_.of else 0)


def _frozen(fields: Fields) -> bool:
    return fields.read("frozen", flag_of, False)


def _region(holder: str, value: Any) -> Region:
    fields = Fields(value, holder)
    graph = Graph(holder)
    _fill(graph, [_entry(each) for each in fields.read("nodes", list_of)])
    arguments = fields.read("arguments", names_of)
    results = fields.read("results", lambda each: tuple(map(_result, list_of(each))))
    fields.close()
    return Region(graph, arguments, results)


def _declared(fields: Fields, find: Any) -> Any:
    """The op or router of a node, with its settings."""
    name = fields.read("is", name_of)
    known: type[Declaration] | None = find(name)
    if known is None:
        _refuse_broken_extensions(name)
        raise InvalidGraph(f'this installation does not know "{name}"', fields.node, "is")
    settings = fields.read("settings", constants_of)
    values = {}
    for key, value in settings.items():
        setting = known.settings().get(key)
        if setting is None or (problem := setting.problem(value)):
            reason = f'"{name}" has no setting "{key}"' if setting is None else f'setting "{key}" {problem}'
            raise InvalidGraph(reason, fields.node, "settings")
        values[key] = setting.convert(value)
    missing = [key for key, setting in known.settings().items() if setting.required and key not in values]
    ask(not missing, f'"{name}" needs the setting "{", ".join(missing)}"', fields.node, "settings")
    return known(**values)


def _refuse_broken_extensions(name: str) -> None:
    """Raises `ModgraphError` where an installed package may declare what is not known, and fails."""
    notes = (Note(text=f'the graph uses "{name}"'),)
    if faults := load_extensions():
        raise ModgraphError([replace(fault, notes=notes) for fault in faults])
