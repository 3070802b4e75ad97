"""How many earlier tokens are read where an axis of tokens is read a second time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modgraph.ir import Graph, Result
from modgraph.ir.analysis.bands import BandFinder, Bands
from modgraph.ir.node import Node, OpNode
from modgraph.ops.along_axis import Positions, Sum
from modgraph.ops.choice import MaskedSoftmax
from modgraph.ops.linear import Contract
from modgraph.ops.rotary import Rotary
from modgraph.ops.sequence import Position
from modgraph.passes.sink import find_place, reads_own_place
from modgraph.types import Axis

COUNTING = (Positions, Position, Rotary)  # ops whose results follow from the number of a place
Value = tuple[Result, str]  # a value, and the name of a second reading among its axes


@dataclass(frozen=True)
class Extent:
    """The earlier tokens that later ones read: the `first` and the `last` ones; all if there is no last."""

    first: int = 0
    last: int | None = None

    @property
    def most(self) -> int | None:
        """The largest number of tokens; None for any number."""
        return None if self.last is None else self.first + self.last

    @property
    def name(self) -> str:
        """A word for the extent; empty for all tokens."""
        first = f"first{self.first}" if self.first else ""
        return "" if self.last is None else f"{first}last{self.last}"

    def join(self, other: Extent) -> Extent:
        """The smallest extent with both."""
        last = None if self.last is None or other.last is None else max(self.last, other.last)
        return ALL if last is None else Extent(max(self.first, other.first), last)


ALL, LEAST = Extent(), Extent(0, 1)


class ExtentFinder:
    """Finds the extents of second readings of an axis.

    Values that meet along such an axis have one extent: that of the ops that sum over it. An op that sums reads no
    further than it is known to be non-zero, by the comparisons of positions in its operands. Any op that does more with
    the axis than to work on each of its places by itself reads all tokens.
    """

    def __init__(self, graph: Graph, axis: Axis) -> None:
        self.graph, self.axis, self.bands = graph, axis, BandFinder(graph)
        self.first: dict[Value, Value] = {}  # of those that meet
        self.extents: dict[Value, Extent] = {}
        for node in graph:
            self._read(node)

    def find(self, value: Result, name: str) -> Extent:
        """The extent of a value with the axis of that name."""
        return self.extents[self._root((value, name))]

    def _root(self, value: Value) -> Value:
        while (found := self.first.setdefault(value, value)) != value:
            value = found
        return value

    def _names(self, result: Result) -> set[str]:
        return {axis.name for axis in self.graph.type_of(result).shape if axis.of == self.axis.name}

    def _read(self, node: Node) -> None:
        operands = [*self.graph.inputs(node.name).values()]
        results = [Result(node.name, at) for at in range(len(node.types))]
        for name in sorted({name for each in (*operands, *results) for name in self._names(each)}):
            extent = self._find_extent(node, operands, results, name)
            met = [(each, name) for each in (*operands, *results) if name in self._names(each)]
            root = self._root(met[0])
            for each in met:
                other = self._root(each)
                self.first[other] = root
                extent = extent.join(self.extents.get(other, LEAST))
            self.extents[root] = extent

    def _find_extent(self, node: Node, operands: list[Result], results: list[Result], name: str) -> Extent:
        """What one node reads along an axis."""
        if not isinstance(node, OpNode):
            return ALL
        if not any(name in self._names(each) for each in operands):
            return LEAST  # it reads the axis a second time
        if isinstance(node.op, COUNTING) and name in self._names(operands[0]):
            return ALL
        keeps_axis = any(name in self._names(each) for each in results)
        if keeps_axis and reads_own_place(node.op, self.graph.signature(node), name):
            return LEAST
        found = [self._limit(operands[at], name) for at in self._list_masks(node, name)]
        return min(found, key=lambda extent: (extent.most is None, extent.most or 0), default=ALL)

    def _list_masks(self, node: OpNode, name: str) -> Iterator[int]:
        """List the operands whose zeros are places along an axis that make no difference."""
        signature, op = self.graph.signature(node), node.op
        if isinstance(op, Contract) and signature.axes["over"].name == name:
            yield from range(2)
        elif isinstance(op, MaskedSoftmax | Sum):
            shape = (signature.results if isinstance(op, MaskedSoftmax) else signature.operands)[0].shape
            if shape[signature.axes["position"]].name == name:
                yield int(isinstance(op, MaskedSoftmax))

    def _limit(self, value: Result, name: str) -> Extent:
        """Where a value may be non-zero along an axis."""
        bands, shape = self.bands.find(value), self.graph.type_of(value).shape
        at, tokens = find_place(shape, name), find_place(shape, self.axis.name)
        return ALL if bands is None or at is None else _read_bands(bands, at, tokens)


def _read_bands(bands: Bands, at: int, tokens: int | None) -> Extent:
    """The extent of bands along an axis, relative to the axis of tokens."""
    found = LEAST
    for piece in bands.pieces:
        low = None
        if tokens is not None and (between := piece.get((min(at, tokens), max(at, tokens)))) is not None:
            low = between.low if at > tokens else None if between.high is None else -between.high
        high = piece[at,].high if (at,) in piece else None
        ends = Extent(0, max(1, -int(low))) if low is not None else ALL if high is None else Extent(int(high) + 1, 1)
        found = found.join(ends)
    return found
