"""Static facts of values: batch invariance, draws, padding and largest lengths."""

from __future__ import annotations

from collections.abc import Callable

from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, PoolNode, Result, RouteNode
from modgraph.ops.along_axis import Sum
from modgraph.ops.array import NextState, State
from modgraph.ops.axes import NewAxis
from modgraph.ops.elementwise import MaskPadding
from modgraph.ops.shape import Rename
from modgraph.routers.weighted import EveryModule, OneModule
from modgraph.types import TensorType


def batch_invariant(graph: Graph) -> frozenset[str]:
    """The ops and routes that depend only on learned and constant arrays, and on no randomness."""
    found: set[str] = set()
    for node in graph:
        sources = {source.node for source in graph.inputs(node.name).values()}
        if is_array(node) or (sources and sources <= found and varies_with_sources(node, graph)):
            found.add(node.name)
    return frozenset(found)


def find_computed_once(graph: Graph) -> frozenset[str]:
    """The nodes that run once for a batch: arrays, and nodes marked `once`."""
    return frozenset(node.name for node in graph if is_computed_once(node))


def is_computed_once(node: Node) -> bool:
    """Whether a node runs once for a batch."""
    return is_array(node) or (isinstance(node, OpNode | RouteNode) and node.once == "batch")


def is_array(node: Node) -> bool:
    """Whether a node is a learned or constant array that all examples share."""
    return isinstance(node, OpNode) and node.op.is_array


def varies_with_sources(node: Node, graph: Graph) -> bool:
    """Whether a node's value differs between examples only if its operands do."""
    sound = not node.op.by_chance if isinstance(node, OpNode) else is_function(node, graph)
    return sound and all(type_.per == "example" for type_ in node.types)


def is_function(node: Node, graph: Graph) -> bool:
    """Whether a node is a pure function of its operands and learned weights."""
    match node:
        case OpNode(op=op):
            moves = isinstance(op, State | NextState) or any(weight.buffer for weight in op.all_weights())
            return len(node.types) == 1 and not (op.by_chance or moves or op.over_batch)
        case RouteNode():
            return isinstance(graph.declaration_of(node), EveryModule | OneModule) and is_function(
                graph.pool_of(node), graph
            )
        case PoolNode():
            inner = ((each, region.graph) for region in node.regions for each in region.graph)
            return all(is_function(*each) for each in inner if isinstance(each[0], OpNode | RouteNode | PoolNode))
        case _:
            return False


Padding = tuple[tuple[int, str], ...]
SAME_ORDER = (NewAxis, Rename, Sum, MaskPadding)  # keep the order of numbers if they change only axes of size 1


def find_draw(choice: Result, graph: Graph) -> OpNode | None:
    """The draw that sampled a choice along its last axis; None if the choice was forced or changed.

    Ops that only insert or remove axes of size 1 do not change it.
    """

    def lengths(type_: TensorType) -> list[int | str]:
        return [axis.size or axis.name for axis in type_.shape if axis.size != 1]

    node = graph[choice.node]
    while isinstance(node, OpNode) and isinstance(node.op, SAME_ORDER):
        (source,) = graph.inputs(node.name).values()
        if lengths(graph.type_of(source)) != lengths(node.types[0]):
            return None
        node = graph[source.node]
    if not isinstance(node, OpNode) or not is_free_draw(node, graph):
        return None
    return node if graph.signature(node).axes["position"] == -1 else None


def is_free_draw(node: Node, graph: Graph) -> bool:
    """Whether a node is a draw without a forced choice as its operand."""
    return isinstance(node, OpNode) and node.op.draws and "forced" not in graph.inputs(node.name)


def free_draws(graph: Graph) -> list[OpNode]:
    """The draws in this graph, without regions, that no operand forces."""
    return [node for node in graph.nodes_of(OpNode) if is_free_draw(node, graph)]


def make_forced_key(draw: str) -> str:
    """The key of a batch that forces the choice of a draw; no name in a spec has a colon."""
    return f"{draw}:forced"


def find_padded_axes(graph: Graph) -> list[str]:
    """The padded axes of a graph's inputs, each once."""
    return list(dict.fromkeys(axis for type_ in graph.input_types.values() for axis in type_.padded))


def list_padding(graph: Graph, type_: TensorType) -> Padding:
    """The padded axes of a value [B, …], counted from 1, each with the input of its lengths."""
    lengths = graph.length_inputs
    axes = enumerate(type_.shape, start=1)
    return tuple((at, lengths[axis.lengths]) for at, axis in axes if axis.is_padded and axis.lengths in lengths)


def free_length_name(axis: str, is_taken: Callable[[str], bool]) -> str:
    """A free name for the input with the lengths of an axis."""
    name = f"{axis}_length"
    while is_taken(name):
        name += "_"
    return name


def name_length(graph: Graph, axis: str) -> str:
    """The name that the input with the lengths of an axis has, or would have."""
    taken = {*graph.input_types, *graph.target_types}
    return graph.length_inputs.get(axis) or free_length_name(axis, taken.__contains__)


def longest(graph: Graph) -> dict[str, int]:
    """The largest lengths of padded axes with a learned vector for each place, by name."""
    found: dict[str, int] = {}
    for part in graph.parts():
        for node in part.graph.nodes_of(OpNode):
            for axis, most in node.op.longest(part.graph.signature(node)).items():
                found[axis] = min(found.get(axis, most), most)
    return found
