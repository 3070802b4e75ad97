"""What outputs depend on besides their own tokens: other examples of the batch, and padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from modgraph.declare.indexing import Indexing, Place, Use
from modgraph.ir.analysis.reach import is_batch_statistic
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, Result, RouteNode, ScanNode
from modgraph.types import Axis


def find_mixing(graph: Graph, training: bool) -> dict[str, Node]:
    """Find for each node that depends on other examples a node by which it does, by name: a statistic of the batch, or
    in training also an op whose results depend on the batch, such as `batch_norm` and `within_capacity`."""
    found: dict[str, Node] = {}
    for node in graph:
        if _mixes(node, graph, training):
            found[node.name] = node
        elif found:
            behind = next((found[each.node] for each in _list_read(node, graph, training) if each.node in found), None)
            if behind is not None:
                found[node.name] = behind
    return found


def _mixes(node: Node, graph: Graph, training: bool) -> bool:
    """Whether a node, or one in its scan or its modules, reads other examples."""
    if isinstance(node, ScanNode):
        return any(_mixes(each, node.region.graph, training) for each in node.region.graph)
    if isinstance(node, RouteNode):
        return training and graph.pool_of(node).over_batch
    return is_batch_statistic(graph, node) or (training and isinstance(node, OpNode) and node.op.over_batch)


def _list_read(node: Node, graph: Graph, training: bool) -> list[Result]:
    """The operands that count."""
    inputs = graph.inputs(node.name)
    if isinstance(node, OpNode) and training:
        read = {each.operand for result in _index(node, graph) for each in result}
        return [each for at, each in enumerate(inputs.values()) if at in read or node.op.is_array]
    if isinstance(node, OpNode) and node.op.outside_training:
        return [inputs[node.op.outside_training]]
    return [] if isinstance(node, OpNode) and node.op.zero_outside_training else [*inputs.values()]


def find_padding_readers(graph: Graph) -> Iterator[OpNode]:
    """Find the ops that read padding: places of an axis beyond their own index, without its mask.

    Examples end where padding begins, so an op that reads its own index or earlier ones never reads padding where its
    result is no padding.
    """
    for part in graph.parts():
        for node in part.graph.nodes_of(OpNode):
            if any(type_.padded for type_ in part.graph.signature(node).operands) and _reads_padding(node, part.graph):
                yield node


def _reads_padding(node: OpNode, graph: Graph) -> bool:
    """Whether an op reads beyond its own index along a padded axis that it does not mask."""
    signature = graph.signature(node)
    masked = signature.padding() if node.op.may_mask else ({},) * len(signature.operands)
    joined = {axis for type_ in signature.operands for axis in type_.ends}  # edges lead to no padding
    for reading in (each for result in _index(node, graph) for each in result):
        axes = zip(signature.operands[reading.operand].shape, reading.places, strict=True)
        for at, (axis, place) in enumerate(axes):
            ahead = axis.is_padded and _reads_ahead(place, signature.results[0].shape)
            if ahead and axis not in joined and at not in masked[reading.operand]:
                return True
    return False


def _reads_ahead(place: Place, shape: tuple[Axis, ...]) -> bool:
    """Whether places along a padded axis may lie beyond the index along one of the result's."""
    if len(place.terms) != 1 or place.high is None or place.high > 0:
        return True
    ((index, factor),) = place.terms
    return not isinstance(index, int) or factor != 1 or not shape[index].is_padded


def _index(node: OpNode, graph: Graph) -> Indexing:
    indexing: Callable[[Use], Indexing] = node.op.indexing
    return indexing(Use(graph.signature(node)))
