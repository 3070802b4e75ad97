"""The graph as text: one line a node, in canonical order."""

from __future__ import annotations

from modgraph.declare import shown_value
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, PoolNode, RouteNode, RouterNode, ScanNode


def to_text(graph: Graph, indent: str = "") -> str:
    """`name: type = kind … (slot <- source)`, regions indented below their pool or scan."""
    given = ", ".join(f"{name}={shown_value(value)}" for name, value in graph.parameters.items())
    lines = [f"{indent}graph {graph.name}({given}) {{"]
    for name in graph.canonical():
        lines += _lines(graph, graph[name], indent + "  ")
    return "\n".join([*lines, indent + "}"])


def _lines(graph: Graph, node: Node, indent: str) -> list[str]:
    types = ", ".join(map(str, node.types))
    head = f"{indent}{node.name}: {types} = " if types else f"{indent}{node.name} = "
    slots = [f"{slot} <- {result}" for slot, result in graph.inputs(node.name).items()]
    operands = f" ({', '.join(slots)})" if slots else ""
    told = [f"{axis} <- {result}" for axis, result in graph.lengths(node.name).items()]
    operands += f" lengths ({', '.join(told)})" if told else ""
    match node:
        case OpNode():
            owner = f" of {node.owner}" if node.owner != node.name else ""
            initial = f" init {node.initial}" if node.initial else ""
            return [f"{head}op {node.op}{owner}{initial}{' frozen' * node.frozen}{operands}"]
        case RouterNode():
            return [f"{head}router {node.router}{' frozen' * node.frozen}"]
        case PoolNode():
            regions = [to_text(region, indent + "  ") for region in node.regions]
            grown = f" grown {node.grown}" if node.grown else ""
            grown += f" shares {node.shares}" if node.shares else ""
            return [f"{head}pool[{node.size}]{grown}{'' if node.alike else ' of unlike modules'}", *regions]
        case RouteNode():
            uses = graph.uses(node.name)
            return [f"{head}route {uses['pool']} by {uses['router']}{operands} lowering {node.lowering}"]
        case ScanNode():
            states = f" with {', '.join(node.states)}" if node.states else ""
            what = f"scan {node.variable}{states} as {', '.join(node.stacked)}"
            return [f"{head}{what}{operands}", to_text(node.region, indent + "  ")]
        case _:
            return [f"{head}{node.kind}{operands}"]
