"""Unroll scans whose rounds mix tokens, so that each round has caches of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from modgraph.frozen import replace_fields
from modgraph.ir import Built, Change, Graph, Part, Result, build_op, rewrite_graph
from modgraph.ir.node import InputNode, Inputs, Node, OpNode, ScanNode
from modgraph.ops import Op
from modgraph.ops.along_axis import Last
from modgraph.ops.arithmetic import Multiply
from modgraph.ops.array import Constant
from modgraph.ops.axes import Expand
from modgraph.ops.compared import Equal, Where
from modgraph.ops.shape import Split, Stack
from modgraph.passes.extents import COUNTING
from modgraph.passes.infrastructure import Pass
from modgraph.passes.sink import find_place, find_reading, reads_own_place
from modgraph.types import TensorType

MOST_ROUNDS = 256


@dataclass(frozen=True)
class UnrollRounds(Pass):
    """Write out the rounds of scans that mix tokens of an input, whose number is fixed.

    Entries of a scan that ends by a value go on in all rounds: later tokens may read what they would be there. Their
    states and final results stay from their end on, as in the scan.
    """

    name: ClassVar[str] = "unroll"

    tokens: Result
    axis: str

    def __call__(self, graph: Graph) -> Graph:
        return rewrite_graph(graph, self.unroll) if graph.nodes_of(ScanNode) else graph

    def unroll(self, node: Node, part: Part) -> Change:
        """The rewrite rule."""
        if part.scan is not None or not isinstance(node, ScanNode) or self.axis not in _names(part.graph, node):
            return node
        sequence = part.graph.type_of(part.graph.inputs(node.name)[node.variable]).shape[0]
        if (
            sequence.name == self.axis
            or not mixes_tokens(node, self.axis)
            or explain_rounds(node, part.graph, self.axis)
        ):
            return node
        return Rounds(node, part.graph, self).build()


def _names(graph: Graph, node: ScanNode) -> set[str]:
    inside = node.region.graph
    types = (type_ for each in inside for type_ in each.types)
    return {axis.name for type_ in types for axis in type_.shape} if graph.inputs(node.name) else set()


def mixes_tokens(scan: ScanNode, axis: str) -> bool:
    """Whether a step reads other tokens along an axis than its own, or their positions."""
    graph = scan.region.graph
    for node in graph.nodes_of(OpNode):
        reading, signature = find_reading(node, graph), graph.signature(node)
        has_axis = any(find_place(type_.shape, axis) is not None for type_ in signature.operands)
        counts = has_axis and isinstance(node.op, COUNTING)
        if counts or (reading is not None and reading.first == axis):
            return True
        if has_axis and not reads_own_place(node.op, signature, axis):
            return True
    return False


def explain_rounds(scan: ScanNode, graph: Graph, axis: str) -> str:
    """Explain why the rounds of a scan cannot be written out; empty if they can."""
    inside, inputs = scan.region.graph, graph.inputs(scan.name)
    rounds = graph.type_of(inputs[scan.variable]).shape[0].size
    if rounds is None or rounds > MOST_ROUNDS:
        return "the number of its rounds depends on data" if rounds is None else f"it has {rounds} rounds"
    other = next((each for each in inside if not isinstance(each, InputNode | OpNode)), None)
    if other is not None:
        return f'its rounds have a {other.kind} ("{other.name}")'
    free = [each for each in scan.states if each not in inputs]
    types = [inside[each].types[0] for each in free]
    if any(each.dtype != "float" or any(at.size is None and at.name != axis for at in each.shape) for each in types):
        return "a state begins at zero along another axis of any length"
    if scan.going is not None:
        axes = len(inside.type_of(scan.going).shape)
        if any(scan.count_own_axes(each) < axes for each in (*scan.following, *scan.stacked)):
            return "its results do not have the axes of the value that ends it"
    return ""


@dataclass
class Rounds:
    """The rounds of one scan."""

    scan: ScanNode
    graph: Graph
    asked: UnrollRounds
    nodes: list[tuple[Node, Inputs]] = field(default_factory=list)

    def build(self) -> Built:
        scan, inputs = self.scan, self.graph.inputs(self.scan.name)
        sequence = self.graph.type_of(inputs[scan.variable])
        states = [inputs.get(state) or self._begin(state) for state in scan.states]
        found: list[list[Result]] = []
        active: Result | None = None
        for at, item in enumerate(self._cut(inputs[scan.variable], sequence)):
            known = {scan.variable: item, **dict(zip(scan.states, states, strict=True))}
            known |= {each: inputs[each] for each in scan.captured}
            now = self._copy(known, at)
            following = [now[each] for each in scan.following]
            results = [now[each] for each in scan.stacked]
            if active is not None:
                following = self._hold(active, following, states, at, "state")
                final = self._hold(active, results[: scan.final], found[-1][: scan.final], at, "final")
                zero = [
                    self._add(f"stacked.{at}.{place}", Where(then=None, otherwise=0.0), active, each)
                    for place, each in enumerate(results[scan.final :])
                ]
                results = [*final, *zero]
            states, found = following, [*found, results]
            active = active if scan.going is None else self._go_on(active, now[scan.going], at)
        moved = {Result(scan.name, at): found[-1][at] for at in range(scan.final)}
        for place in range(scan.final, len(scan.types)):
            stack = self._add(f"stack.{place}", Stack(axis=sequence.shape[0].name), *(each[place] for each in found))
            moved[Result(scan.name, place)] = stack
        return Built(tuple(self.nodes), moved=moved)

    def _add(self, name: str, op: Op, *operands: Result) -> Result:
        self.nodes.append(build_op(f"{self.scan.name}~round.{name}", op, *operands))
        return Result(f"{self.scan.name}~round.{name}")

    def _cut(self, value: Result, type_: TensorType) -> Iterable[Result]:
        """The items of a sequence."""
        count, axis = type_.shape[0].size or 0, -len(type_.shape)
        if count > 1:
            parts = self._add("items", Split(parts=(1,) * count, axis=axis), value)
            return [self._add(f"item.{at}", Last(axis=axis), Result(parts.node, at)) for at in range(count)]
        return [self._add("item", Last(axis=axis), value)]

    def _begin(self, state: str) -> Result:
        """A state of zeros."""
        shape, name = self.scan.region.graph[state].types[0].shape, f"begin.{self.scan.states.index(state)}"
        kept = [axis for axis in shape if axis.size is not None]
        sizes, names = tuple(axis.size or 0 for axis in kept), tuple(axis.name for axis in kept)
        zeros = self._add(
            f"{name}.zeros", Constant(sizes=sizes, names=names, numbers=(0.0,), ids=None), self.asked.tokens
        )
        at = find_place(shape, self.asked.axis)
        if at is None:
            return zeros
        return self._add(f"{name}.all", Expand(axis=self.asked.axis, at=at), zeros, self.asked.tokens)

    def _copy(self, known: dict[str, Result], at: int) -> dict[Result, Result]:
        """Copy a step; its values by those of the region."""
        inside = self.scan.region.graph
        now = {Result(name): value for name, value in known.items()}
        for node in inside.nodes_of(OpNode):
            name = f"{node.name}~round.{at}"
            owner = node.owner if node.op.all_weights() else name
            inputs = {slot: now[each] for slot, each in inside.inputs(node.name).items()}
            self.nodes.append((replace_fields(node, name=name, owner=owner), inputs))
            now |= {Result(node.name, place): Result(name, place) for place in range(len(node.types))}
        return now

    def _hold(self, active: Result, new: list[Result], old: list[Result], at: int, what: str) -> list[Result]:
        """New values of entries that go on, old ones of others."""
        pairs = enumerate(zip(new, old, strict=True))
        return [self._add(f"{what}.{at}.{n}", Where(then=None, otherwise=None), active, *pair) for n, pair in pairs]

    def _go_on(self, active: Result | None, going: Result, at: int) -> Result:
        """Whether entries go on after a round."""
        ends = self._add(f"ends.{at}", Equal(right=0.0), going)
        goes = self._add(f"goes.{at}", Equal(right=0.0), ends)
        return goes if active is None else self._add(f"active.{at}", Multiply(left=None, right=None), active, goes)
