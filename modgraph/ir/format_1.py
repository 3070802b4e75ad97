"""Graphs as the first format wrote them, brought to the second before they are read."""

from __future__ import annotations

from typing import Any


def upgraded(record: Any) -> Any:
    """A record of format 1 in format 2: regions say their arguments and results, which format 1 told by names."""
    nodes = [_node(entry) for entry in record["nodes"]]
    inputs = [entry["name"] for entry in nodes if entry["kind"] == "input"]
    return {"inputs": inputs, **record, "format": 2, "nodes": nodes}


def _node(entry: Any) -> Any:
    match entry["kind"]:
        case "pool":
            return {**entry, "regions": [_region(each, ["x"], ["output"]) for each in entry["regions"]]}
        case "scan":
            return _scan(entry)
        case "route" if entry["lowering"] == "message_passing":
            return {key: value for key, value in entry.items() if key != "lowering"}
        case _:
            return entry


def _scan(entry: Any) -> Any:
    """The sequence flows into the slot of its slice, and states and values from outside are told by their order."""
    rest = {key: value for key, value in entry.items() if key not in ("variable", "states", "stacked")}
    variable, states = entry["variable"], entry["states"]
    slots = [slot for slot, _, _ in entry["inputs"]]
    captured = [slot for slot in slots if slot not in ("sequence", "length", *states)]
    names = [*(f"next.{state}" for state in states), *entry["stacked"]]
    inputs = [[variable if slot == "sequence" else slot, *source] for slot, *source in entry["inputs"]]
    region = _region(entry["region"], [variable, *states, *captured], names)
    return {**rest, "inputs": inputs, "carried": len(states), "region": region}


def _region(record: Any, arguments: list[str], results: list[str]) -> Any:
    """A region without its nodes of outputs: their sources are its results."""
    outputs = {entry["name"]: entry["inputs"][0][1:] for entry in record["nodes"] if entry["kind"] == "output"}
    nodes = [_node(entry) for entry in record["nodes"] if entry["kind"] != "output"]
    values = [outputs[f"output.{name}"] for name in results]
    return {"nodes": nodes, "arguments": arguments, "results": values}
