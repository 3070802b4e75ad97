"""Reads graphs whose nodes are listed one by one, so that tests can damage any of them."""

from __future__ import annotations

from typing import Any

from modgraph.ir import Graph, from_json
from modgraph.ir.stored.program import FORMAT


def flat_from_json(record: Any) -> Graph:
    """The graph that `flat_to_json` described, its inputs in the order that it lists. Raises `UnreadableGraph`."""
    order = {name: place for place, name in enumerate(record["inputs"])}
    nodes = sorted(record["nodes"], key=lambda node: order.get(node["name"], len(order)))
    facts = {key: value for key, value in record.items() if key != "inputs"}
    body = [*map(_without_lengths, nodes)]
    return from_json({"format": FORMAT, "definitions": [], "weights": {}, **facts, "nodes": body})


def _without_lengths(node: Any) -> Any:
    """A node whose lengths follow from what flows into it."""
    inner = {key: _in_regions(value) for key, value in node.items() if key in ("region", "regions")}
    return {key: value for key, value in node.items() if key != "lengths"} | inner


def _in_regions(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_in_regions, value)]
    return value | {"nodes": [*map(_without_lengths, value["nodes"])]}
