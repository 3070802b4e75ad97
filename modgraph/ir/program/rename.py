"""A node under other names: of itself, of what holds its weights, of axes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from modgraph.ir.node import DecisionNode, GrowthNode, Node, OpNode, OutputNode, PoolNode, RouteNode, RouterNode
from modgraph.ir.program.relative import OUTER, Level, Naming, Place, rename_axes
from modgraph.routers import Router

GROWTH = ".growth"
N = TypeVar("N", bound=Node)
BESIDE = ""  # the owner, in a definition, of a node whose weights are called as the node is in the whole graph


def _paths(pool: PoolNode) -> dict[str, str]:
    return {"shares": pool.shares, "inside": pool.inside}


def output_name(label: str) -> str:
    """What the node of an output is called, in any body."""
    word = label.lstrip(OUTER)
    return f"{OUTER * (len(label) - len(word))}output.{word}"


def rename(node: N, name: str, owner: Naming) -> N:
    """A node of another name, whose axes and pools are called as `owner` says. Its regions stay as they are."""
    facts: dict[str, Any] = {"name": name, "types": tuple(rename_axes(each, owner) for each in node.types)}
    match node:
        case OpNode():
            facts["op"] = node.op.with_axes(owner)
        case RouterNode(router=Router() as router):
            facts["router"] = router.with_axes(owner)
        case PoolNode():
            facts |= {name: owner(path) if path else "" for name, path in _paths(node).items()}
    return replace(node, **facts)


def make_relative(node: Node, level: Level) -> Node:
    """A node of a graph as a body says it."""
    match node:
        case OpNode():
            name = level.node(node.name)
            return replace(rename(node, name, level.owner), owner=_owner(node, name, level))
        case PoolNode() | RouterNode():
            return rename(node, level.owner(node.name), level.owner)
        case OutputNode() if node.name == output_name(node.label):
            label = level.node(node.label)
            return replace(rename(node, output_name(label), level.owner), label=label)
        case GrowthNode() if node.name.endswith(GROWTH):
            return rename(node, level.owner(node.name.removesuffix(GROWTH)) + GROWTH, level.owner)
        case RouteNode() | DecisionNode() if node.label:
            return replace(rename(node, level.node(node.name), level.owner), label=level.node(node.label))
        case _:
            return rename(node, level.node(node.name), level.owner)


def _owner(node: OpNode, name: str, level: Level) -> str:
    if level.weights(node.owner) == name:
        return name
    return BESIDE if node.owner == node.name else level.owner(node.owner)


def make_absolute(node: Node, place: Place) -> Node:
    """A node of a definition as the graph says it, where its body stands."""
    match node:
        case OpNode():
            name = place.node(node.name)
            return replace(rename(node, name, place.owner), owner=_absolute_owner(node, name, place))
        case PoolNode() | RouterNode():
            return rename(node, place.owner(node.name), place.owner)
        case OutputNode() if node.name == output_name(node.label):
            label = place.node(node.label)
            return replace(rename(node, output_name(label), place.owner), label=label)
        case GrowthNode() if node.name.endswith(GROWTH):
            return rename(node, place.owner(node.name.removesuffix(GROWTH)) + GROWTH, place.owner)
        case RouteNode() | DecisionNode() if node.label:
            return replace(rename(node, place.node(node.name), place.owner), label=place.node(node.label))
        case _:
            return rename(node, place.node(node.name), place.owner)


def _absolute_owner(node: OpNode, name: str, place: Place) -> str:
    if node.owner == node.name:
        return place.weight(node.name)
    return name if node.owner == BESIDE else place.owner(node.owner)
