"""Read an axis of tokens a second time as late as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from modgraph.declare import Signature
from modgraph.declare.indexing import Use, place_at
from modgraph.frozen import replace_fields
from modgraph.ir import Built, Change, Graph, Part, Result, build_op, rewrite_graph
from modgraph.ir.node import Inputs, Node, OpNode
from modgraph.ops.shape import Rename
from modgraph.passes.infrastructure import Pass
from modgraph.types import Shape


@dataclass(frozen=True)
class SinkReadings(Pass):
    """Apply ops that work on each token by itself before the axis of tokens is read a second time, not after.

    A cache then keeps their results: keys and values, not the tokens that they are made of.
    """

    name: ClassVar[str] = "sink"

    def __call__(self, graph: Graph) -> Graph:
        return rewrite_graph(graph, Sinker(graph).sink)


@dataclass(frozen=True)
class Reading:
    """A second reading of an axis: the value with the first, and the names of both."""

    source: Result
    first: str
    second: str


def find_reading(node: Node, graph: Graph) -> Reading | None:
    """The second reading that an op only makes; None for any other op."""
    if not isinstance(node, OpNode) or not isinstance(node.op, Rename) or len(node.op.names) != 2:
        return None
    source = graph.inputs(node.name)["x"]
    first, second = node.op.names
    axis = next((axis for axis in node.types[0].shape if axis.name == second), None)
    return Reading(source, first, second) if axis is not None and axis.of == first else None


class Sinker:
    """The rule of one graph. `readings` are the second readings so far, by their result."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readings: dict[Result, Reading] = {}

    def sink(self, node: Node, part: Part) -> Change:
        if part.graph is not self.graph or not isinstance(node, OpNode):
            return node
        reading = find_reading(node, self.graph)
        if reading is not None:
            self.readings[Result(node.name)] = reading
            return node
        inputs = self.graph.inputs(node.name)
        found = {self.readings[each].second: self.readings[each] for each in inputs.values() if each in self.readings}
        return self._move(node, *found.values()) if len(found) == 1 and self._fits(node, *found.values()) else node

    def _fits(self, node: OpNode, reading: Reading) -> bool:
        """Whether an op works on each token by itself, along an axis that is read a second time."""
        inputs, signature = [*self.graph.inputs(node.name).values()], self.graph.signature(node)
        axes = {axis.name for type_ in (*signature.operands, *node.types) for axis in type_.shape}
        if reading.first in axes or any(find_place(type_.shape, reading.second) is None for type_ in node.types):
            return False
        own = {at: find_place(type_.shape, reading.second) for at, type_ in enumerate(signature.operands)}
        if any(place is not None and inputs[at] not in self.readings for at, place in own.items()):
            return False
        return reads_own_place(node.op, signature, reading.second)

    def _move(self, node: OpNode, reading: Reading) -> Built:
        """The op on the first reading, and second readings of its results."""
        names = {reading.second: reading.first}
        op = node.op.with_axes(lambda name: names.get(name, name))
        inputs = self.graph.inputs(node.name).items()
        before = {slot: self.readings[each].source if each in self.readings else each for slot, each in inputs}
        name, moved = f"{node.name}~once", {}
        owner = node.owner if op.all_weights() else name
        nodes: list[tuple[Node, Inputs]] = [(replace_fields(node, name=name, owner=owner, op=op, types=()), before)]
        for at in range(len(node.types)):
            again = f"{node.name}~again.{at}" if at or node.op.all_weights() else node.name
            rename = Rename(names=(reading.first, reading.second))
            nodes.append(build_op(again, rename, Result(name, at), span=node.span))
            moved[Result(node.name, at)] = Result(again)
            self.readings[Result(node.name, at)] = replace_fields(reading, source=Result(name, at))
        return Built(tuple(nodes), moved=moved)


def find_place(shape: Shape, name: str) -> int | None:
    """The place of a named axis, counted from the last."""
    return next((at - len(shape) for at, axis in enumerate(shape) if axis.name == name), None)


def reads_own_place(declared: Any, signature: Signature, name: str, values: int | None = None) -> bool:
    """Whether each place of results along a named axis reads its own alone; `values` is the number of results."""
    uses = declared.indexing(Use(signature, training=False))[:values]
    for type_, readings in zip(signature.results, uses, strict=False):
        own = find_place(type_.shape, name)
        for reading in readings:
            at = find_place(signature.operands[reading.operand].shape, name)
            if at is not None and (own is None or reading.places[at] != place_at(own)):
                return False
    return True
