"""A comparison as JSON; docs/diff.md describes the fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from modgraph.declare import Initial, Record
from modgraph.inspect.cost import Cost
from modgraph.inspect.diff.architecture_diff import Comparison, Fate, Side, Weight
from modgraph.inspect.diff.changes import Attribute, Unmatched
from modgraph.inspect.diff.level import split_place
from modgraph.inspect.diff.runs_diff import RunsCompared
from modgraph.inspect.diff.text import find_moves_of
from modgraph.ir import Graph, OpNode, Region, Result, flat_to_json, node_with_edges
from modgraph.types import TensorType

FORMAT = 1


def as_json(found: Comparison) -> dict[str, Any]:
    diff, sides = found.diff, {"before": found.before, "after": found.after}
    owners = [dict(_owners(side.graph)) for side in sides.values()]

    def costs_at(*places: str) -> dict[str, Any]:
        """Count the costs of a node before and after; an empty place costs nothing."""
        names = [own.get(name, name) for own, (_, name) in zip(owners, map(split_place, places), strict=True)]
        costs = [cost.nodes.get(name, Cost()).counts for cost, name in zip(found.costs, names, strict=True)]
        return {"costs": dict(zip(sides, costs, strict=True))}

    def node(each: Unmatched, *places: str) -> dict[str, Any]:
        stored = node_with_edges(each.graph, each.node)
        return {"kind": each.kind, "place": each.place, "node": stored, **costs_at(*places)}

    runs = found.runs
    seconds = [{}, {}] if runs is None or runs.seconds is None else [{"seconds": each} for each in runs.seconds]

    return {
        "format": FORMAT,
        **{name: _side(side) for name, side in sides.items()},
        "different": found.is_different,
        "notes": [*found.notes],
        "model": [*map(_attribute, diff.model)],
        "added": [node(each, "", each.place) for each in diff.added],
        "removed": [node(each, each.place, "") for each in diff.removed],
        "changed": [
            {name: getattr(each, name) for name in ("kind", "before", "after", "follows")}
            | {"attributes": [*map(_attribute, each.attributes)], **costs_at(each.before, each.after)}
            for each in diff.changed
        ],
        "moved": [asdict(each) for each in diff.moved],
        "moves": [asdict(each) for each in find_moves_of(diff.moved, found.keys)],
        "doubts": [{**asdict(each), "declaration": each.declaration} for each in found.reported.doubts],
        "costs": {name: cost.counts | more for name, cost, more in zip(sides, found.costs, seconds, strict=True)},
        "weights": {
            fate: {
                "weights": len(weights),
                "values": count,
                "list": [_weight(each) for each in weights if fate is not Fate.KEPT],
            }
            for fate, weights, count in found.fates()
        },
        "values": _plain(asdict(found.values)),
        **({} if runs is None else _runs(runs)),
    }


def _runs(found: RunsCompared) -> dict[str, Any]:
    """The differences of two runs."""
    metrics = [asdict(each) | {"difference": each.difference, "better": each.better} for each in found.metrics]
    routing = [asdict(each) | {"distance": each.distance} for each in found.routing]
    recipe, data = ([asdict(each) for each in changes] for changes in (found.recipe, found.data))
    return {"recipe": recipe, "data": data, "metrics": metrics, "routing": _plain(routing)}


def _owners(graph: Graph) -> Iterator[tuple[str, str]]:
    """The names of ops with the owners of their weights, under which they are counted."""
    for part in graph.parts():
        yield from ((node.name, node.owner) for node in part.graph.nodes_of(OpNode))


def _side(side: Side) -> dict[str, Any]:
    return {"path": side.path, "kind": side.kind, "model": side.graph.name, "hash": side.graph.hash()}


def _attribute(each: Attribute) -> dict[str, Any]:
    return {"name": each.name, "before": _plain(each.before), "after": _plain(each.after)}


def _plain(value: Any) -> Any:
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
            return {"arguments": [*value.arguments], "results": _plain(value.results), **nodes}
        case range():
            return {"range": [value.start, value.stop]}
        case tuple() | list():
            return [*map(_plain, value)]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case _:
            return value


def _weight(each: Weight) -> dict[str, Any]:
    sides = {"before": each.before, "after": each.after}
    names = {side: weight.name if weight else None for side, weight in sides.items()}
    shapes = [[*weight.shape] if weight else None for weight in sides.values()]
    return {**names, "shapes": shapes, "axes": each.list_reshaped_axes()}
