"""The axes of any length in a graph, and how long they may be."""

from __future__ import annotations

from collections.abc import Callable

from modgraph.ir.graph import Graph
from modgraph.ir.node import OpNode
from modgraph.types import TensorType

Padding = tuple[tuple[int, str], ...]


def padded_axes(graph: Graph) -> list[str]:
    """The axes of any length among a graph's inputs, each once."""
    return list(dict.fromkeys(axis for type_ in graph.input_types.values() for axis in type_.padded))


def padding_of(graph: Graph, type_: TensorType) -> Padding:
    """The axes of a value [B, …] that hold padding, counted from 1, each with the input that tells its lengths."""
    lengths = graph.length_inputs()
    axes = enumerate(type_.shape, start=1)
    return tuple((at, lengths[axis.name]) for at, axis in axes if axis.is_padded and axis.name in lengths)


def free_length_name(axis: str, is_taken: Callable[[str], bool]) -> str:
    """What an input is called that tells how long examples are along an axis, where some names are taken."""
    name = f"{axis}_length"
    while is_taken(name):
        name += "_"
    return name


def length_name(graph: Graph, axis: str) -> str:
    """What the input is called, or would be, that tells how long examples are along an axis."""
    known = graph.length_inputs()
    taken = {*graph.input_types, *graph.target_types}
    return known[axis] if axis in known else free_length_name(axis, taken.__contains__)


def longest(graph: Graph) -> dict[str, int]:
    """Axes that cannot have any length, since a learned vector belongs to each place along them."""
    found: dict[str, int] = {}
    nodes = [(part.graph, node) for part in graph.parts() for node in part.graph.of_kind(OpNode)]
    for part, node in nodes:
        for axis, most in node.op.longest(part.signature(node)).items():
            found[axis] = min(found.get(axis, most), most)
    return found
