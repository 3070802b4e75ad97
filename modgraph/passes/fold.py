"""Remove ops that change no number, and fold constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from modgraph.ir import Built, Change, Graph, Node, OpNode, Part, Result, build_op, rewrite_with_moves
from modgraph.ops.along_axis import Positions, Softmax
from modgraph.ops.arithmetic import Arithmetic, Multiply
from modgraph.ops.array import Constant
from modgraph.ops.elementwise import MaskPadding
from modgraph.ops.shape import Flatten, Rename
from modgraph.passes.infrastructure import Moved, Pass


@dataclass(frozen=True)
class Fold(Pass):
    """Remove 0 + x, 1 · x, x / 1, and renames and masks without effect; fold 0 · positions to a constant.

    The softmax of equal numbers is a constant too. An op stays if its removal would change the type of a value, or if
    its result is one of a scan's step.
    """

    name: ClassVar[str] = "fold"

    def rewrite(self, graph: Graph) -> Moved:
        return Moved(*rewrite_with_moves(graph, fold_node))


def fold_node(node: Node, part: Part) -> Change:
    graph = part.graph
    ends = part.scan.region.results if part.scan is not None else ()
    if not isinstance(node, OpNode) or part.place or Result(node.name) in ends:
        return node
    if (operand := _find_equal_operand(node, graph)) is not None:
        return operand
    if isinstance(node.op, Constant) or (found := _constant(node, graph)) is None:
        return node
    like, constant = found
    return Built((build_op(node.name, constant, like),))


def _find_equal_operand(node: OpNode, graph: Graph) -> Result | None:
    """Find the operand that equals the result of an op in numbers and type, if any."""
    inputs, op = [*graph.inputs(node.name).values()], node.op
    if len(inputs) != 1 or graph.lengths(node.name) or graph.type_of(inputs[0]) != node.types[0]:
        return None
    sides = zip(("left", "right"), op.constants, strict=True) if isinstance(op, Arithmetic) else ()
    neutral = any(side in op.neutral and op.neutral[side] == value for side, value in sides)
    return inputs[0] if neutral or isinstance(op, Rename | MaskPadding | Flatten) else None


def _constant(node: OpNode, graph: Graph) -> tuple[Result, Constant] | None:
    """Find a value with the batch size, and the constant that an op computes; None if it computes no constant."""
    number = _number(node, graph)
    shape = node.types[0].shape
    if number is None or graph.lengths(node.name) or any(axis.size is None for axis in shape):
        return None
    while not isinstance(node.op, Positions | Constant):
        (source,) = graph.inputs(node.name).values()
        node = graph[source.node]  # type: ignore[assignment]
    (like,) = graph.inputs(node.name).values()
    if graph.type_of(like).per != "example":
        return None
    sizes, names = tuple(axis.size or 0 for axis in shape), tuple(axis.name for axis in shape)
    return like, Constant(sizes=sizes, names=names if any(names) else (), numbers=(number,), ids=None)


def _number(node: Node, graph: Graph) -> float | None:
    """Find the number at every place of a node's value; None if its numbers differ or are unknown."""
    if not isinstance(node, OpNode) or len(inputs := [*graph.inputs(node.name).values()]) != 1:
        return None
    source = graph[inputs[0].node]
    match node.op:
        case Constant(numbers=(number,)):
            return number
        case Multiply() if 0 in node.op.constants and isinstance(source, OpNode) and isinstance(source.op, Positions):
            return 0.0
        case Softmax() if _number(source, graph) is not None:
            axis = graph.signature(node).axes["position"]
            size = node.types[0].shape[axis].size
            return None if size is None else 1 / size
        case _:
            return None
