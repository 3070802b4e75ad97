"""A comparison as JSON, for tools: docs/diff.md says what each field is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from modgraph.declare import Initial, Record
from modgraph.inspect.diff.comparison import Comparison, Side
from modgraph.inspect.diff.keys import moves_of
from modgraph.inspect.diff.text import reshaped_axes
from modgraph.inspect.diff.values import Added, Attribute, Removed
from modgraph.inspect.diff.weights import Fate, Weight
from modgraph.ir import Region, Result, flat_to_json, node_with_edges
from modgraph.types import TensorType

FORMAT = 1


def as_json(found: Comparison) -> dict[str, Any]:
    diff, costs = found.diff, found.costs
    return {
        "format": FORMAT,
        "before": _side(found.before),
        "after": _side(found.after),
        "different": found.is_different,
        "notes": [*found.notes],
        "model": [*map(_attribute, diff.model)],
        "added": [_node(each, found) for each in diff.added],
        "removed": [_node(each, found) for each in diff.removed],
        "changed": [
            {
                "kind": each.kind,
                "before": each.before,
                "after": each.after,
                "follows": each.follows,
                "attributes": [*map(_attribute, each.attributes)],
                **_cost_at(each.after, found),
            }
            for each in diff.changed
        ],
        "moved": [asdict(each) for each in diff.moved],
        "moves": [asdict(each) for each in moves_of(diff.moved, found.keys)],
        "doubts": [{**asdict(each), "declaration": each.declaration} for each in found.told.doubts],
        "costs": {"before": costs.before.counts, "after": costs.after.counts},
        "weights": {fate: _weights(weights) for fate, weights in found.fates().items()},
        "values": {
            "trained": found.values.trained,
            "equal": found.values.equal,
            "different": [*found.values.different],
            "longer": [*found.values.longer],
            "reason": found.values.reason,
        },
    }


def _side(side: Side) -> dict[str, Any]:
    return {"path": side.path, "kind": side.kind, "model": side.graph.name, "hash": side.graph.hash()}


def _node(each: Added | Removed, found: Comparison) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "place": each.place,
        "node": node_with_edges(each.graph, each.node),
        **_cost_at(each.place, found),
    }


def _attribute(each: Attribute) -> dict[str, Any]:
    return {"name": each.name, "before": _value(each.before), "after": _value(each.after)}


def _value(value: Any) -> Any:
    match value:
        case TensorType():
            return value.as_json()
        case Result():
            return [value.node, value.index]
        case Initial():
            return asdict(value)
        case Record():
            return [value.name, value.role.name.lower()]
        case Region():
            nodes = {"nodes": flat_to_json(value.graph)["nodes"]} if len(value.graph) else {}
            return {"arguments": [*value.arguments], "results": [*map(_value, value.results)], **nodes}
        case range():
            return {"range": [value.start, value.stop]}
        case tuple() | list():
            return [*map(_value, value)]
        case _:
            return value


def _cost_at(place: str, found: Comparison) -> dict[str, Any]:
    before, after = found.costs.nodes[place]
    return {"costs": {"before": before.counts, "after": after.counts}}


def _weights(weights: list[Weight]) -> dict[str, Any]:
    """How many, of how many values; and which, but for those that are kept as they are."""
    told = [_weight(each) for each in weights if each.fate is not Fate.KEPT]
    return {"weights": len(weights), "values": sum(each.count for each in weights), "list": told}


def _weight(each: Weight) -> dict[str, Any]:
    names = {"before": each.before.name if each.before else None, "after": each.after.name if each.after else None}
    shapes = [[*side.shape] if side else None for side in (each.before, each.after)]
    axes = [*reshaped_axes(each)] if each.fate is Fate.RESHAPED else []
    return {**names, "shapes": shapes, "axes": axes}
