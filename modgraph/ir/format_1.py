"""Graphs as the first format wrote them, brought to the second.

Regions and outputs were told by names, lengths flowed into a slot called `length` from inputs called after their axes,
and axes had no identity: types are worked out anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.lengths import length_name
from modgraph.ir.node import InputNode, OpNode, Result, RouteNode
from modgraph.ir.rewrite import rewritten
from modgraph.types import TensorType

LENGTH = "_length"
OUTPUT = "output."

UNLOWERED = "message_passing"  # what format 1 wrote of a route that had no form yet, besides those that had this one


def upgraded(record: Any) -> Any:
    """A record of format 1 in format 2: regions say their arguments and results, which format 1 told by names, and
    routes of a graph that is not lowered have no form."""
    lowered = any(form != UNLOWERED for form in _forms(record["nodes"]))
    nodes = [_node(entry, lowered) for entry in record["nodes"]]
    inputs = [entry["name"] for entry in nodes if entry["kind"] == "input"]
    return {"inputs": inputs, **record, "format": 2, "nodes": nodes}


def retyped(graph: Graph) -> Graph:
    """A graph of format 1 with the types that follow from its inputs, every node told the padding that it must know.

    Raises `Misfit` where they do not follow.
    """
    typed = rewritten(graph)
    inputs = typed.length_inputs()
    copy = Graph(graph.name, graph.parameters)
    for node in typed:
        lengths = typed.lengths(node.name)
        if isinstance(node, OpNode | RouteNode):
            padded = typed.signature(node).padded()
            for axis in padded:
                if axis not in inputs:
                    inputs[axis] = length_name(typed, axis)
                    copy.add(InputNode(name=inputs[axis], types=(TensorType("length", of=axis),)))
            lengths = {axis: Result(inputs[axis]) for axis in padded}
        copy.add(node, typed.inputs(node.name), typed.uses(node.name), lengths)
    return copy


def _forms(nodes: list[Any]) -> Iterator[str]:
    """The forms of all routes, in scans too."""
    for entry in nodes:
        if entry["kind"] == "route":
            yield entry["lowering"]
        elif entry["kind"] == "scan":
            yield from _forms(entry["region"]["nodes"])


def _node(entry: Any, lowered: bool) -> Any:
    entry = _with_lengths(entry)
    match entry["kind"]:
        case "pool":
            return {**entry, "regions": [_region(each, ["x"], ["output"], lowered) for each in entry["regions"]]}
        case "scan":
            return _scan(entry, lowered)
        case "output":
            return {**entry, "label": entry["name"].removeprefix(OUTPUT)}
        case "route" if not lowered:
            return {key: value for key, value in entry.items() if key != "lowering"}
        case _:
            return entry


def _with_lengths(entry: Any) -> Any:
    """A node whose length flows in along an edge of its own; an input of lengths says of which axis they are."""
    if entry["kind"] == "input" and entry["types"][0]["dtype"] == "length":
        return {**entry, "types": [{**entry["types"][0], "of": _axis(entry["name"])}]}
    inputs = entry.get("inputs", [])
    lengths = [[_axis(source[0]), *source] for slot, *source in inputs if slot == "length"]
    kept = {"inputs": [each for each in inputs if each[0] != "length"]} if inputs else {}
    return {**entry, **kept, **({"lengths": lengths} if lengths else {})}


def _axis(name: str) -> str:
    return name.removeprefix("outer.").removesuffix(LENGTH)


def _scan(entry: Any, lowered: bool) -> Any:
    """The sequence flows into the slot of its slice, and states and values from outside are told by their order."""
    rest = {key: value for key, value in entry.items() if key not in ("variable", "states", "stacked")}
    variable, states = entry["variable"], entry["states"]
    slots = [slot for slot, _, _ in entry["inputs"]]
    captured = [slot for slot in slots if slot not in ("sequence", *states)]
    names = [*(f"next.{state}" for state in states), *entry["stacked"]]
    inputs = [[variable if slot == "sequence" else slot, *source] for slot, *source in entry["inputs"]]
    region = _region(entry["region"], [variable, *states, *captured], names, lowered)
    return {**rest, "inputs": inputs, "carried": len(states), "region": region}


def _region(record: Any, arguments: list[str], results: list[str], lowered: bool) -> Any:
    """A region without its nodes of outputs: their sources are its results. Its arguments stand first, in order."""
    outputs = {entry["name"]: entry["inputs"][0][1:] for entry in record["nodes"] if entry["kind"] == "output"}
    nodes = [_node(entry, lowered) for entry in record["nodes"] if entry["kind"] != "output"]
    order = {name: position for position, name in enumerate(arguments)}
    nodes.sort(key=lambda entry: order.get(entry["name"], len(order)))
    values = [outputs[OUTPUT + name] for name in results]
    return {"nodes": nodes, "arguments": arguments, "results": values}
