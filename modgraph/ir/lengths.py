"""The axes of any length in a graph, and how long they may be."""

from __future__ import annotations

from modgraph.ir.graph import Graph
from modgraph.ir.node import OpNode


def padded_axes(graph: Graph) -> list[str]:
    """The axes of any length among a graph's inputs, each once."""
    return list(dict.fromkeys(axis for type_ in graph.input_types.values() for axis in type_.padded))


def length_name(graph: Graph, axis: str) -> str:
    """What the input is called, or would be, that tells how long examples are along an axis."""
    name = f"{axis}_length"
    taken = {*graph.input_types, *graph.target_types}
    while axis not in graph.length_inputs() and name in taken:
        name += "_"
    return graph.length_inputs().get(axis, name)


def longest(graph: Graph) -> dict[str, int]:
    """Axes that cannot have any length, since a learned vector belongs to each place along them."""
    found: dict[str, int] = {}
    nodes = [(part.graph, node) for part in graph.parts() for node in part.graph.of_kind(OpNode)]
    for part, node in nodes:
        for axis, most in node.op.longest(part.signature(node)).items():
            found[axis] = min(found.get(axis, most), most)
    return found
