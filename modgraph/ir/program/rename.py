"""A node under other names and with other marks: of itself, of what holds its weights, of axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from modgraph.frozen import changed
from modgraph.ir.node import DecisionNode, GrowthNode, Node, OpNode, OutputNode, PoolNode, RouteNode, RouterNode
from modgraph.ir.program.relative import OUTER, Level, Naming, Place, rename_axes
from modgraph.routers import Router

GROWTH = ".growth"
N = TypeVar("N", bound=Node)
LOCAL = ""  # the owner, in a definition, of a node whose weights stand where it does
UNMARKED: Mapping[str, Any] = {"frozen": False, "initial": None, "grown": 0, "label": ""}


def marks_of(node: Node) -> dict[str, Any]:
    """What of a node is no part of its definition."""
    if isinstance(node, OutputNode):
        return {}
    marks = {name: getattr(node, name) for name in UNMARKED if hasattr(node, name)}
    return marks | ({"label": marks["label"] or node.name} if "label" in marks else {})


def with_marks(node: Node, marks: Mapping[str, Any]) -> Node:
    """A node with other marks. A label that is the node's name is none."""
    facts = {name: "" if (name, value) == ("label", node.name) else value for name, value in marks.items()}
    return changed(node, **facts)


def without_marks(node: Node) -> Node:
    return changed(node, **{name: UNMARKED[name] for name in marks_of(node)})


def rename(node: N, name: str, owner: Naming) -> N:
    """A node of another name, whose axes and pools are called as `owner` says. Its regions stay as they are."""
    facts: dict[str, Any] = {"name": name, "types": tuple(rename_axes(each, owner) for each in node.types)}
    match node:
        case OpNode():
            facts["op"] = node.op.with_axes(owner)
        case RouterNode(router=Router() as router):
            facts["router"] = router.with_axes(owner)
        case PoolNode():
            paths = {"shares": node.shares, "inside": node.inside}
            facts |= {field: owner(path) if path else "" for field, path in paths.items()}
    return changed(node, **facts)


def make_relative(node: Node, level: Level) -> Node:
    """A node of a graph as a body says it."""
    said = _said(node, level.node, level.owner)
    if not isinstance(node, OpNode):
        return said
    if level.weights(node.owner) == said.name:
        return changed(said, owner=said.name)
    return changed(said, owner=LOCAL if node.owner == node.name else level.owner(node.owner))


def make_absolute(node: Node, place: Place) -> Node:
    """A node of a definition as the graph says it, where its body stands."""
    said = _said(node, place.node, place.owner)
    if not isinstance(node, OpNode):
        return said
    if node.owner == node.name:
        return changed(said, owner=place.weight(node.name))
    return changed(said, owner=said.name if node.owner == LOCAL else place.owner(node.owner))


def _said(node: Node, name: Naming, owner: Naming) -> Node:
    """A node under another name, as `name` says those of nodes, and `owner` those of pools, routers and axes."""
    match node:
        case PoolNode() | RouterNode():
            return rename(node, owner(node.name), owner)
        case OutputNode() if node.name == _output_name(node.label):
            label = name(node.label)
            return changed(rename(node, _output_name(label), owner), label=label)
        case GrowthNode() if node.name.endswith(GROWTH):
            return rename(node, owner(node.name.removesuffix(GROWTH)) + GROWTH, owner)
        case RouteNode() | DecisionNode() if node.label:
            return changed(rename(node, name(node.name), owner), label=name(node.label))
        case _:
            return rename(node, name(node.name), owner)


def _output_name(label: str) -> str:
    """What the node of an output is called, in any body."""
    word = label.lstrip(OUTER)
    return f"{OUTER * (len(label) - len(word))}output.{word}"
