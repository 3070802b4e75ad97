"""Reads weights over the modules of a pool as slots: ids of modules, and a gate for each.

Weights [..., M] are Σ_s gates[..., s] · one_hot(ids[..., s]). Slots follow through the ops that keep such a sum:
products with other values, sums over outer axes, sums of two such values, and a `masked_softmax` among the chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from modgraph.declare.indexing import Inner, Reading, Use
from modgraph.ir.graph import Graph
from modgraph.ir.node import Inputs, Node, OpNode, Result
from modgraph.ir.rewrite import build_op
from modgraph.ops import Op
from modgraph.ops.along_axis import Mean, Softmax, Sum
from modgraph.ops.arithmetic import Add, Divide, Multiply, Subtract
from modgraph.ops.axes import Expand, Merge, NewAxis, Transpose
from modgraph.ops.choice import MaskedSoftmax, TopK
from modgraph.ops.compared import GreaterEqual
from modgraph.ops.elementwise import Identity, MaskPadding
from modgraph.ops.ids import OneHot, TopKIndices
from modgraph.ops.linear import Contract
from modgraph.ops.lookup import Lookup
from modgraph.ops.shape import Concat
from modgraph.ops.situation import StopGradient
from modgraph.types import Axis, Misfit, Shape, TensorType


@dataclass(frozen=True)
class Slots:
    """Ids and gates of one shape; the last `count` axes are slots. Without gates, all are one.

    The ids of a token are `distinct` if no two of its slots name one module.
    """

    ids: Result
    gates: Result | None = None
    count: int = 0
    distinct: bool = False


class Builder:
    """Builds ops whose results have types at once; names begin with a prefix."""

    def __init__(self, graph: Graph, prefix: str) -> None:
        self.graph = graph
        self.prefix = prefix
        self.types: dict[Result, TensorType] = {}
        self.nodes: list[tuple[Node, Inputs]] = []

    def type_of(self, value: Result) -> TensorType:
        return self.types[value] if value in self.types else self.graph.type_of(value)

    def shape_of(self, value: Result) -> Shape:
        return self.type_of(value).shape

    def add(self, word: str, op: Op, *operands: Result) -> Result:
        """Add an op. Raises `Misfit`."""
        name = f"{self.prefix}{word}"
        while Result(name) in self.types:
            name += "~again"
        self.types[Result(name)] = op.bind(*map(self.type_of, operands)).results[0]
        self.nodes.append(build_op(name, op, *operands))
        return Result(name)

    def make_gates(self, slots: Slots) -> Result:
        """The gates of slots, also where all are one."""
        return slots.gates or self.add("ones", GreaterEqual(right=0.0), slots.ids)

    def spread(self, value: Result, places: Sequence[int], like: Result) -> Result | None:
        """Repeat a value, whose axes are those of `like` at increasing places, along the other axes of it."""
        shape = self.shape_of(like)
        if [*places] != sorted({*places}):
            return None
        for at in (at for at in range(len(shape)) if at not in places):
            axis, place = shape[at], -1 - sum(each > at for each in places)
            if axis.size is None:
                value = self.add("spread", Expand(axis=axis.name, at=place), value, like)
            else:
                value = self.add("spread", NewAxis(length=axis.size, axis=axis.name, at=place), value)
            places = sorted((*places, at))
        return value if self.shape_of(value) == shape else None


def read_slots(weights: Result, modules: Axis, builder: Builder, by_scores: bool) -> Slots | None:
    """Read weights, whose last axis is that of the modules, as slots; None if they are none.

    With `by_scores`, the k largest of some scores are slots too.
    """
    try:
        return _Reader(modules, builder, by_scores).read(weights)
    except Misfit:  # ids and gates do not align
        return None


class _Reader:
    def __init__(self, modules: Axis, builder: Builder, by_scores: bool) -> None:
        self.modules = modules
        self.builder = builder
        self.by_scores = by_scores
        self.graph = builder.graph
        self.known: dict[Result, Slots | None] = {}

    def read(self, value: Result) -> Slots | None:
        if value not in self.known:
            node = self.graph[value.node]
            shape = self.graph.type_of(value).shape
            is_op = isinstance(node, OpNode) and not value.index and shape[-1:] == (self.modules,)
            found = self._read_op(node) if is_op and isinstance(node, OpNode) else None
            whole = found is not None and self._outer(found) == shape[:-1]
            self.known[value] = found if whole else None
        return self.known[value]

    def _outer(self, slots: Slots) -> Shape:
        shape = self.builder.shape_of(slots.ids)
        return shape[: len(shape) - slots.count]

    def _read_op(self, node: OpNode) -> Slots | None:
        operands = [*self.graph.inputs(node.name).values()]
        match node.op:
            case OneHot(missing=False):
                return Slots(operands[0], distinct=True)
            case TopK(k=k) if self.by_scores and self.graph.signature(node).axes["position"] == -1:
                return Slots(self._find_largest(operands[0], k), None, 1, distinct=True)
            case MaskedSoftmax() if len(operands) == 2 and self.graph.signature(node).axes["position"] == -1:
                return self._read_softmax(*operands)
            case Multiply() | Divide():
                return self._read_product(node, operands)
            case Add() | Subtract() if len(operands) == 2:
                return self._join(node, *operands)
            case Sum() | Mean():
                return self._read_sum(node, operands[0])
            case Contract():
                return self._read_contraction(node, operands)
            case Identity() | MaskPadding() | StopGradient():
                found = self.read(operands[0])
                return found if found is None else self._apply(node.op, found)
        return None

    def _apply(self, op: Op, slots: Slots) -> Slots:
        """Apply an op to the gates that is zero where they are."""
        return replace(slots, gates=self.builder.add("gates", op, self.builder.make_gates(slots)))

    def _find_largest(self, scores: Result, k: int) -> Result:
        names = {axis.name for axis in self.graph.type_of(scores).shape}
        into = next(name for name in (f"slot{'_' * length}" for length in range(len(names) + 1)) if name not in names)
        return self.builder.add("best", TopKIndices(k=k, axis=-1, into=into), scores)

    def _read_softmax(self, scores: Result, choice: Result) -> Slots | None:
        found = self.read(choice)
        if found is None or found.gates is not None or found.count != 1 or not found.distinct:
            return None
        at = self._gather(scores, [*range(len(self.graph.type_of(scores).shape))], found)
        return None if at is None else replace(found, gates=self.builder.add("gates", Softmax(axis=-1), at))

    # ------------------------------------------------------------ products

    def _read_product(self, node: OpNode, operands: list[Result]) -> Slots | None:
        for place in node.op.zero_with():
            found = self.read(operands[place]) if place < len(operands) else None
            if found is None:
                continue
            if len(operands) == 1:
                return self._apply(node.op, found)
            rank = len(node.types[0].shape)
            own, axes = self._follow(node, place), self._follow(node, 1 - place)
            if own == [*range(rank)] and axes is not None:
                return self._multiply(type(node.op)(left=None, right=None), found, operands[1 - place], axes)
        return None

    def _read_contraction(self, node: OpNode, operands: list[Result]) -> Slots | None:
        """Read the sum of products over an outer axis of one operand."""
        rank = len(node.types[0].shape)
        for place in (0, 1):
            found, own = self.read(operands[place]), self._follow(node, place)
            axes = self._follow(node, 1 - place)
            if found is None or own is None or axes is None or [at for at in own if at >= 0] != [*range(rank)]:
                continue
            over = own.index(-1)
            known = {at: number for number, at in enumerate(own)}
            product = self._multiply(
                Multiply(left=None, right=None), found, operands[1 - place], [known[each] for each in axes]
            )
            return None if product is None else self._sum(product, over)
        return None

    def _follow(self, node: OpNode, number: int) -> list[int] | None:
        """The axis of the result that each axis of an operand is, counted from the first; -1 for one that is summed."""
        readings = [each for each in node.op.indexing(Use(self.graph.signature(node)))[0] if each.operand == number]
        return _list_axes(readings[0], len(node.types[0].shape)) if len(readings) == 1 else None

    def _multiply(self, op: Op, slots: Slots, other: Result, axes: list[int]) -> Slots | None:
        """Multiply or divide gates by another value; `axes` are its axes among those of the weights."""
        rank = len(self._outer(slots))
        node = self.graph[other.node]
        while axes[-1:] == [rank] and isinstance(node, OpNode) and isinstance(node.op, NewAxis | Expand):
            if self.graph.signature(node).axes["place"] != -1:
                break
            other, axes = next(iter(self.graph.inputs(node.name).values())), axes[:-1]  # equal for all modules
            node = self.graph[other.node]
        own = rank in axes  # a value of each module
        found = self._gather(other, axes, slots) if own else self.builder.spread(other, axes, slots.ids)
        if found is None:
            return None
        if slots.gates is None and isinstance(op, Multiply):
            return replace(slots, gates=found)
        return replace(slots, gates=self.builder.add("gates", op, self.builder.make_gates(slots), found))

    def _gather(self, table: Result, axes: list[int], slots: Slots) -> Result | None:
        """Look up a value [..., modules] at the ids."""
        ids, shape, outer = self.builder.shape_of(slots.ids), self.builder.shape_of(table), self._outer(slots)
        if axes[-1:] != [len(outer)]:
            return None
        plain = [at for at, axis in enumerate(ids) if not axis.name]
        for axis, at in zip(shape[:-1], axes, strict=False):
            if ids[at] != axis or (not axis.name and plain.pop(0) != at):
                return None
        found = self.builder.add("at", Lookup(axis=-1, sparse=False), table, slots.ids)
        return found if self.builder.shape_of(found) == ids else None

    # ------------------------------------------------------------ sums

    def _read_sum(self, node: OpNode, operand: Result) -> Slots | None:
        found, place = self.read(operand), self.graph.signature(node).axes["position"]
        if found is None or place == -1:
            return None
        size = self.graph.type_of(operand).shape[place].size
        if isinstance(node.op, Mean) and size is not None:
            found = self._apply(Divide(left=None, right=float(size)), found)
        return self._sum(found, place + len(self.graph.type_of(operand).shape))

    def _sum(self, slots: Slots, at: int) -> Slots | None:
        """Sum weights over an outer axis: it becomes a slot."""
        outer = self._outer(slots)
        if outer[at].size is None:
            return None
        moved = [*range(at + 1, len(outer)), at]
        if moved != [at]:
            rank = len(outer) + slots.count
            op = Transpose(axes=tuple(each - rank for each in moved))
            ids = self.builder.add("ids", op, slots.ids)
            gates = None if slots.gates is None else self.builder.add("gates", op, slots.gates)
            slots = replace(slots, ids=ids, gates=gates)
        return replace(slots, count=slots.count + 1, distinct=False)

    def _join(self, node: OpNode, *operands: Result) -> Slots | None:
        """Read the sum of two weights: the slots of both."""
        first, second = map(self.read, operands)
        if (
            first is None
            or second is None
            or any(self._follow(node, at) != [*range(len(node.types[0].shape))] for at in (0, 1))
        ):
            return None
        if isinstance(node.op, Subtract):
            second = self._apply(Multiply(left=-1.0, right=None), second)
        pairs = [(each.ids, self.builder.make_gates(each)) for each in (first, second)]
        columns = [
            [self._flatten(value, each.count) for value in pair]
            for each, pair in zip((first, second), pairs, strict=True)
        ]
        ids, gates = (
            self.builder.add(word, Concat(), *pair)
            for word, pair in zip(("ids", "gates"), zip(*columns, strict=True), strict=True)
        )
        return Slots(ids, gates, 1)

    def _flatten(self, value: Result, count: int) -> Result:
        """Make one axis of all slots."""
        if count == 0:
            return self.builder.add("one", NewAxis(length=1, axis="", at=-1), value)
        return value if count == 1 else self.builder.add("slots", Merge(axes=tuple(range(-count, 0)), into=""), value)


def _list_axes(reading: Reading, rank: int) -> list[int] | None:
    """The axes of the result that an operand reads at its own index; -1 for a summed one. None for others."""
    found = []
    for place in reading.places:
        if len(place.terms) != 1 or (place.low, place.high, place.terms[0][1]) != (0, 0, 1):
            return None
        index = place.terms[0][0]
        found.append(-1 if isinstance(index, Inner) else index + rank)
    return found
