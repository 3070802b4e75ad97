"""Graphs as the first format wrote them, brought to the second before they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

UNLOWERED = "message_passing"  # what format 1 wrote of a route that had no form yet, besides those that had this one


def upgraded(record: Any) -> Any:
    """A record of format 1 in format 2: regions say their arguments and results, which format 1 told by names, and
    routes of a graph that is not lowered have no form."""
    lowered = any(form != UNLOWERED for form in _forms(record["nodes"]))
    nodes = [_node(entry, lowered) for entry in record["nodes"]]
    inputs = [entry["name"] for entry in nodes if entry["kind"] == "input"]
    return {"inputs": inputs, **record, "format": 2, "nodes": nodes}


def _forms(nodes: list[Any]) -> Iterator[str]:
    """The forms of all routes, in scans too."""
    for entry in nodes:
        if entry["kind"] == "route":
            yield entry["lowering"]
        elif entry["kind"] == "scan":
            yield from _forms(entry["region"]["nodes"])


def _node(entry: Any, lowered: bool) -> Any:
    match entry["kind"]:
        case "pool":
            return {**entry, "regions": [_region(each, ["x"], ["output"], lowered) for each in entry["regions"]]}
        case "scan":
            return _scan(entry, lowered)
        case "route" if not lowered:
            return {key: value for key, value in entry.items() if key != "lowering"}
        case _:
            return entry


def _scan(entry: Any, lowered: bool) -> Any:
    """The sequence flows into the slot of its slice, and states and values from outside are told by their order."""
    rest = {key: value for key, value in entry.items() if key not in ("variable", "states", "stacked")}
    variable, states = entry["variable"], entry["states"]
    slots = [slot for slot, _, _ in entry["inputs"]]
    captured = [slot for slot in slots if slot not in ("sequence", "length", *states)]
    names = [*(f"next.{state}" for state in states), *entry["stacked"]]
    inputs = [[variable if slot == "sequence" else slot, *source] for slot, *source in entry["inputs"]]
    region = _region(entry["region"], [variable, *states, *captured], names, lowered)
    return {**rest, "inputs": inputs, "carried": len(states), "region": region}


def _region(record: Any, arguments: list[str], results: list[str], lowered: bool) -> Any:
    """A region without its nodes of outputs: their sources are its results."""
    outputs = {entry["name"]: entry["inputs"][0][1:] for entry in record["nodes"] if entry["kind"] == "output"}
    nodes = [_node(entry, lowered) for entry in record["nodes"] if entry["kind"] != "output"]
    values = [outputs[f"output.{name}"] for name in results]
    return {"nodes": nodes, "arguments": arguments, "results": values}
