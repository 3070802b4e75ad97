"""The graph as text: one line a node, in canonical order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.declare import shown_value
from modgraph.ir.decision_form import decision_to_json
from modgraph.ir.graph import Graph
from modgraph.ir.node import (
    DecisionNode,
    GrowthNode,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    RouteNode,
    RouterNode,
    ScanNode,
    TargetNode,
)
from modgraph.ir.region import Region
from modgraph.routers import RouterText

STEP = "  "


def to_text(graph: Graph) -> str:
    """`name: type = kind … (slot <- source)`, the nodes of regions indented below their pool or scan."""
    return "\n".join([f"graph {heading(graph)} {{", *_lines(graph, STEP), "}"])


def heading(graph: Graph) -> str:
    """The model's name with its parameters, as a spec calls it."""
    given = ", ".join(f"{name}={shown_value(value)}" for name, value in graph.parameters.items())
    return f"{graph.name}({given})"


def _lines(graph: Graph, indent: str) -> Iterator[str]:
    for name in graph.canonical():
        node = graph[name]
        types = ", ".join(map(str, node.types))
        yield f"{indent}{node.name}{f': {types}' if types else ''} = {_content(graph, node, indent)}"


def _content(graph: Graph, node: Node, indent: str) -> str:
    slots = [f"{slot} <- {result}" for slot, result in graph.inputs(node.name).items()]
    operands = f" ({', '.join(slots)})" if slots else ""
    lengths = [f"{axis} <- {result}" for axis, result in graph.lengths(node.name).items()]
    operands += f" lengths ({', '.join(lengths)})" if lengths else ""
    match node:
        case OpNode():
            owner = f" of {node.owner}" if node.owner != node.name else ""
            initial = f" init {node.initial}" if node.initial else ""
            return f"op {node.op}{owner}{initial}{' frozen' * node.frozen}{operands}"
        case RouterNode(router=RouterText() as text):
            given, defaults = _values("given", dict(text.given)), _values("defaults", dict(text.defaults))
            return f"router text {text.name}{given}{defaults}{' frozen' * node.frozen}"
        case RouterNode():
            return f"router {node.router}{' frozen' * node.frozen}"
        case DecisionNode():
            uses, form = graph.uses(node.name), decision_to_json(node)
            rounds = f" rounds {node.rounds}" if node.rounds > 1 else ""
            records = ", ".join(f"{name}: {role}" for name, role in form.get("records", ()))
            records = f" records ({records})" if records else ""
            facts = _values("facts", form.get("facts", {}))
            return f"decision {uses['pool']} by {uses['router']}{rounds}{records}{facts}{operands}"
        case PoolNode():
            grown = f" grown {node.grown}" if node.grown else ""
            grown += f" shares {node.shares}" if node.shares else ""
            grown += f" inside {node.inside}" if node.inside else ""
            return f"pool[{node.size}]{grown}{_regions(node.regions, indent)}"
        case RouteNode():
            uses = graph.uses(node.name)
            lowering = f" lowering {node.lowering}" if node.lowering is not None else ""
            return f"route {uses['pool']} by {uses['router']}{operands}{lowering}"
        case TargetNode():
            return f"target grown {node.grown}" if node.grown else "target"
        case GrowthNode():
            uses = graph.uses(node.name)
            return f"growth {uses['pool']} by {uses['router']}{operands}"
        case ScanNode():
            return f"scan carrying {node.carried}{operands}{_regions((node.region,), indent)}"
        case OutputNode():
            return f"output {node.label}{operands}"
        case _:
            return f"{node.kind}{operands}"


def _values(word: str, values: Mapping[str, Any]) -> str:
    """` word (name=value, …)`, or nothing where there are no values."""
    listed = ", ".join(f"{name}={shown_value(value)}" for name, value in values.items())
    return f" {word} ({listed})" if listed else ""


def _regions(regions: tuple[Region, ...], indent: str) -> str:
    """Regions one after the other, below the node that has them."""
    inner = indent + STEP
    return f"\n{inner}{' '.join(_region(region, inner) for region in regions)}"


def _region(region: Region, indent: str) -> str:
    """`region(arguments) -> (results) { … }`."""
    head = f"region({', '.join(region.arguments)}) -> ({', '.join(map(str, region.results))}) {{"
    return "\n".join([head, *_lines(region.graph, indent + STEP), indent + "}"])
