"""Describes nodes, declarations and spans in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from modgraph.declare import Declaration, format_value
from modgraph.inspect.scene.values import Lines
from modgraph.ir import Call, DecisionNode, Graph, GrowthNode, Node, PoolNode, RouteNode, RouterNode
from modgraph.routers import RouterText

NUMBER = re.compile(r"-?\d+\.\d*(e-?\d+)?")


@dataclass(frozen=True)
class Level:
    """The place of a body: its graph, the prefix of ids, the paths of its nodes and weights.

    In a scan, `shared` names the nodes around it whose pools and routers it uses.
    """

    graph: Graph
    prefix: str = ""
    path: str = ""
    weights: str = ""
    shared: frozenset[str] = frozenset()

    def label_of(self, node: Node) -> str:
        """The label of a node: pools and routers are called as their weights, a route as its pool."""
        if isinstance(node, RouteNode | DecisionNode):
            words = self.graph.pool_of(node).name.split(".")
            first = max((at for at, word in enumerate(words) if not word.isdecimal()), default=0)
            return ".".join(words[first:])
        declared = isinstance(node, PoolNode | RouterNode | GrowthNode) and node.name.startswith(f"{self.weights}.")
        return strip_path(self.weights if declared else self.path, node.name)

    def label(self, call: Call) -> str:
        """The label of a call: a module's name, or a block's name if the use has no other."""
        if call.kind == "module":
            return strip_path(self.weights, call.weights)
        label = strip_path(self.path, call.path)
        last = label.rpartition(".")[2]
        return call.definition if call.definition in (last, last.rstrip("0123456789")) else label


def strip_path(path: str, name: str) -> str:
    """A name relative to a path."""
    return name.removeprefix(f"{path}.") if path else name


def brief(declaration: Declaration | RouterText) -> str:
    """A declaration with its settings, numbers to four digits; a router as in a spec."""
    if isinstance(declaration, RouterText):
        given = ((key, f"{float(v):.4g}" if NUMBER.fullmatch(v) else v) for key, v in declaration.given)
        return str(RouterText(declaration.name, tuple(given)))
    values = declaration.values().items()
    settings = ", ".join(f"{key}={f'{v:.4g}' if isinstance(v, float) else format_value(v)}" for key, v in values)
    return f"{declaration.name}({settings})" if settings else declaration.name


def help_of(declaration: Declaration | RouterText) -> str:
    if isinstance(declaration, RouterText):
        return "A router that is written in the language."
    return (declaration.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


def settings_of(declaration: Declaration | RouterText) -> tuple[tuple[str, str], ...]:
    if isinstance(declaration, RouterText):
        return (*declaration.given, *declaration.defaults)
    return format_settings({name: getattr(declaration, name) for name in declaration.settings()})


def format_settings(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, format_value(value)) for name, value in values.items())


def shape_of(axes: tuple[object, ...]) -> str:
    return f"[{', '.join(map(str, axes))}]"


def lines_of(node: Node) -> Lines | None:
    if node.span is None:
        return None
    source, start, end = node.span.source, node.span.start, node.span.end
    first, last = source.position(start)[0], source.position(max(start, end - 1))[0]
    return Lines(source.label, start, end, first, last)
