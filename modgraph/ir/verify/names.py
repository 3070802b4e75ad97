"""Holds names against what they name: nodes of the whole model, and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.invalid import ask
from modgraph.ir.node import InputNode, Node, OpNode, OutputNode, PoolNode, RouteNode, RouterNode, TargetNode
from modgraph.ir.part import Part
from modgraph.ops import Op
from modgraph.types import Axis


@dataclass(frozen=True)
class Owner:
    """A name of weights, the node that claims it, and all that must be the same wherever it is claimed."""

    name: str
    node: str
    facts: tuple[Any, ...]


def verify_names(graph: Graph) -> None:
    """What has one name is one thing, in the regions of scans too. Raises `InvalidGraph`."""
    known: dict[str, Node] = {}
    for node in (node for part in graph.parts() for node in part.graph):
        shared = isinstance(node, PoolNode | RouterNode)
        same = known.setdefault(node.name, node) is node or (shared and known[node.name] == node)
        ask(same, f"{node.name} is two things", node.name, "name")
    for pool in graph.pools().values():
        ask(not pool.inside, "it stands in no other pool", pool.name, "inside")
    outputs: dict[str, OutputNode] = {}
    for end in graph.of_kind(OutputNode):
        ask(outputs.setdefault(end.label, end) is end, f"another output is called {end.label}", end.name, "label")
    _verify_axes(graph)
    verify_owners(owner for part in graph.parts() for owner in owners_of(part))


def _verify_axes(graph: Graph) -> None:
    """An axis that has a name and a size is as long wherever it is given: by a pool, an input or a target."""
    known: dict[str, int] = {}
    for node in graph:
        match node:
            case PoolNode():
                axes: tuple[Axis | None, ...] = (node.axis,)
            case InputNode() | TargetNode():
                axes = (*node.types[0].shape, node.types[0].classes)
            case _:
                continue
        for axis in axes:
            if axis is not None and axis.name and axis.size is not None:
                size = known.setdefault(axis.name, axis.size)
                ask(size == axis.size, f"{axis.name} is {size} elsewhere, not {axis.size}", node.name, _field(node))


def _field(node: Node) -> str:
    """The field of a node that says how long an axis is."""
    return "size" if isinstance(node, PoolNode) else "types"


def owners_of(part: Part) -> Iterator[Owner]:
    """The names below which the nodes of a graph have weights, or might."""
    graph = part.graph
    for node in graph:
        match node:
            case OpNode():
                weights = tuple(graph.signature(node).weight_shapes().items())
                yield Owner(node.owner, node.name, (*_settings(node.op), weights, node.initial, node.frozen))
            case PoolNode():
                yield Owner(node.name, node.name, ("pool",))
            case RouteNode():
                weights = tuple(graph.signature(node).weight_shapes().items())
                yield Owner(graph.router_of(node).name, node.name, ("router", weights))


def _settings(op: Op) -> tuple[Any, ...]:
    """What an op is, but for the names of axes: those of each use are its own."""
    known = op.settings()
    return op.name, {name: value for name, value in op.values().items() if not known[name].bounds.get("axis")}


def verify_owners(owners: Iterable[Owner]) -> None:
    """Nodes that use one name of weights use the same weights, and no name lies below another."""
    known: dict[str, Owner] = {}
    for owner in owners:
        first = known.setdefault(owner.name, owner)
        ask(first.facts == owner.facts, f"{first.node} has other weights of the name {owner.name}", owner.node, "owner")
    for name, owner in known.items():
        parts = name.split(".")
        above = [".".join(parts[:end]) for end in range(1, len(parts))]
        blocked = next((each for each in above if each in known), "")
        ask(not blocked, f"weights of {name} would lie below those of {blocked}", owner.node, "owner")
