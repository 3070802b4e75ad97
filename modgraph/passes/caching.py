"""The caches of a model that takes tokens one after another: for each node, what later tokens read of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatchmethod
from typing import Any

from modgraph.declare.indexing import Use
from modgraph.frozen import replace_fields
from modgraph.ir import Built, Change, Graph, Part, Result, build_op, copy_graph, name_length, rewrite_graph
from modgraph.ir.analysis.causality import Tokens
from modgraph.ir.node import InputNode, Inputs, Node, OpNode, OutputNode, RouteNode, ScanNode
from modgraph.ir.part import infer_scan_types
from modgraph.ops import Op
from modgraph.ops.along_axis import CumulativeSum, Last, Positions
from modgraph.ops.arithmetic import Add
from modgraph.ops.axes import NewAxis
from modgraph.ops.compared import Greater, Where
from modgraph.ops.neighbours import Conv1d, Shift
from modgraph.ops.rotary import Rotary
from modgraph.ops.sequence import GRU, LSTM, Position
from modgraph.ops.shape import Rename
from modgraph.ops.steps import Append, Recent, Retain, Tail
from modgraph.passes.cache_names import CACHE, COUNT, PLACES, name_kept
from modgraph.passes.extents import Extent, ExtentFinder
from modgraph.passes.pointwise import raise_impossible, require_pointwise
from modgraph.passes.sink import find_reading
from modgraph.passes.unroll import explain_rounds, mixes_tokens
from modgraph.types import Axis, TensorType


@dataclass(frozen=True)
class Cache:
    """What a step takes from the one before, of a type, and what it leaves for the next."""

    type: TensorType
    following: Result


@dataclass
class StepBuilder:
    """The incremental form of one graph. `changed` are the replacements of nodes by name."""

    graph: Graph
    tokens: Tokens
    caches: dict[str, Cache] = field(default_factory=dict)
    changed: dict[str, Change] = field(default_factory=dict)
    lengths: list[str] = field(default_factory=list)  # axes whose lengths the graph lacks
    counting: list[tuple[Node, Inputs]] = field(default_factory=list)  # ops that count positions

    @property
    def axis(self) -> Axis:
        """The axis of tokens: in the incremental form, of new ones."""
        return self.graph.type_of(self.tokens.value).shape[self.tokens.axis]

    @cached_property
    def extents(self) -> ExtentFinder:
        """How many earlier tokens second readings of the axis read."""
        return ExtentFinder(self.graph, self.axis)

    def past(self, extent: Extent) -> Axis:
        """The axis of tokens seen before, as far as they are kept."""
        return Axis(None, f"{name_kept(self.axis.name, extent.name)}.past")

    def total(self, extent: Extent) -> str:
        """The name of the axis of these and new tokens."""
        return f"{name_kept(self.axis.name, extent.name)}.total"

    def build(self) -> Graph:
        for node in self.graph:
            self._step(node)
        found = rewrite_graph(self.graph, self._rule)
        needed = dict.fromkeys(axis for node in found for axis in found.list_masked_axes(node.name))
        self.lengths = [axis for axis in needed if axis not in found.length_inputs]
        found = copy_graph(rewrite_graph(self.graph, self._rule))
        for name, cache in self.caches.items():
            found.add(OutputNode(name=f"output.{name}", label=name), {"x": cache.following})
        return found

    def _rule(self, node: Node, part: Part) -> Change:
        if part.graph is not self.graph:
            return node
        if node.name == self.tokens.value.node:
            caches: list[tuple[Node, Inputs]] = [
                (InputNode(name=name, types=(each.type,)), {}) for name, each in self.caches.items()
            ]
            inputs: list[tuple[Node, Inputs]] = [
                (InputNode(name=name_length(self.graph, of), types=(TensorType("length", of=of),)), {})
                for of in self.lengths
            ]
            return Built(((node, {}), *caches, *inputs, *self.counting))
        return self.changed.get(node.name, node)

    def _step(self, node: Node) -> None:
        """Find the replacement of a node."""
        match node:
            case OpNode():
                reading = find_reading(node, self.graph)
                if reading is not None and reading.first == self.axis.name:
                    self._keep_tokens(node, reading.source, reading.second)
                elif self.axis in self.graph.type_of(next(iter(self.graph.inputs(node.name).values()))).shape:
                    self._step_op(node.op, node)
                else:
                    require_pointwise(node, self.graph, self.axis)
            case ScanNode():
                self._step_scan(node)
            case RouteNode():
                require_pointwise(node, self.graph, self.axis)

    # ------------------------------------------------------------ what reads earlier tokens

    def _keep_tokens(self, node: OpNode, source: Result, second: str) -> None:
        """Keep a value of tokens that is read a second time, of as many as later ones read."""
        extent, made = self.extents.find(Result(node.name), second), self.graph[source.node]
        total = self.total(extent)
        if isinstance(made, OpNode) and isinstance(made.op, Positions):
            rename = Rename(names=(total, second))
            self.changed[node.name] = Built((build_op(node.name, rename, self._count_kept(extent), span=node.span),))
            return
        type_ = self.graph.type_of(source)
        kept = replace_axis(type_, self.axis, self.past(extent))
        append = Append(axis=type_.shape.index(self.axis) - len(type_.shape), into=second, of=total)
        self.changed[node.name] = Built(self._append(node.name, node.name, kept, source, append, extent))

    def _append(
        self, name: str, cache: str, kept: TensorType, x: Result, append: Append, extent: Extent
    ) -> tuple[tuple[Node, Inputs], ...]:
        """Append new tokens to those that a cache keeps, and keep those of an extent for the next step."""
        if extent.last is None:
            return (build_op(name, append, self._cache(cache, kept, Result(name)), x),)
        before = self._cache(cache, kept, Result(f"{name}~kept"))
        into = f"{name_kept(self.axis.name, extent.name)}.next"
        retain = Retain(first=extent.first, last=extent.last, axis=append.axis, into=into)
        return build_op(name, append, before, x), build_op(f"{name}~kept", retain, Result(name))

    @singledispatchmethod
    def _step_op(self, op: Op, node: OpNode) -> None:
        require_pointwise(node, self.graph, self.axis)

    @_step_op.register
    def _(self, op: Positions, node: OpNode) -> None:
        if node.types[0].shape == (self.axis,):
            self.changed[node.name] = self._count()

    @_step_op.register(Rotary)
    @_step_op.register(Position)
    def _(self, op: Op, node: OpNode) -> None:
        inputs, signature = self.graph.inputs(node.name), self.graph.signature(node)
        along = signature.operands[0].shape[signature.axes["position"] if isinstance(op, Rotary) else -2]
        if len(inputs) == 1 and along == self.axis:
            self.changed[node.name] = Built(((node, {**inputs, "places": self._count()}),))

    @_step_op.register(Shift)
    @_step_op.register(Conv1d)
    def _(self, op: Any, node: OpNode) -> None:
        signature = self.graph.signature(node)
        position = signature.axes["position"]
        if signature.operands[0].shape[position] != self.axis:
            return
        ((reading, *_),) = op.indexing(Use(signature, training=False))
        self._keep_window(node, -int(reading.places[position].low or 0), position)

    @_step_op.register
    def _(self, op: CumulativeSum, node: OpNode) -> None:
        signature = self.graph.signature(node)
        if signature.operands[0].shape[signature.axes["position"]] == self.axis:
            self._carry_sum(node, signature.axes["position"])

    @_step_op.register(GRU)
    @_step_op.register(LSTM)
    def _(self, op: GRU | LSTM, node: OpNode) -> None:
        if op.reverse or self.graph.signature(node).operands[0].shape[-2] != self.axis:
            require_pointwise(node, self.graph, self.axis)
            return
        states, inputs = [each.name for each in op.operands[1:]], self.graph.inputs(node.name)
        type_, given = node.types[0], {"x": inputs["x"]}
        kept = type_.with_shape((*type_.shape[:-2], type_.shape[-1]))
        before, after = list[tuple[Node, Inputs]](), list[tuple[Node, Inputs]]()
        for at, state in enumerate(states):
            last = f"{node.name}~last.{state}"
            cache = self._cache(f"{node.name}.{state}", kept, Result(last))
            first, given[state] = self._begin(f"{node.name}~first.{state}", inputs.get(state), cache)
            before += first
            after.append(build_op(last, Last(axis=-2), Result(node.name, at)))
        run = replace_fields(node, op=replace(op, cells=True)) if isinstance(op, LSTM) else node
        self.changed[node.name] = Built((*before, (run, given), *after))

    def _step_scan(self, node: ScanNode) -> None:
        inputs = self.graph.inputs(node.name)
        sequence = self.graph.type_of(inputs[node.variable])
        captured = [self.graph.type_of(inputs[each]).shape for each in node.captured]
        inside = any(self.axis in shape for shape in (*captured, sequence.shape[1:]))
        if sequence.shape[0] != self.axis:
            if mixes_tokens(node, self.axis.name):
                reason = f"its rounds read several tokens, and {explain_rounds(node, self.graph, self.axis.name)}"
                raise_impossible(node, reason, "write the rounds as a repeat block: modgraph explain repeat")
            for each in node.region.graph:
                require_pointwise(each, node.region.graph, self.axis)
            return
        if node.final or inside:
            reason = "it ends by a value" if node.final else "each step reads all tokens"
            raise_impossible(node, reason, "let the scan run along the tokens, without an end of its own")
        nodes: list[tuple[Node, Inputs]] = []
        given, after = dict(inputs), len(node.stacked)
        for at, state in enumerate(node.states):
            last = f"{node.name}~last.{at}"
            name = self._cache(f"{node.name}.{at}", node.region.graph[state].types[0], Result(last))
            first, given[state] = self._begin(f"{node.name}~first.{at}", inputs.get(state), name)
            nodes += first
        region = replace_fields(node.region, results=(*node.region.results, *node.following))
        scan = replace(node, region=region, types=())
        scan = replace(scan, types=infer_scan_types(scan, self.axis))
        nodes.append((scan, {slot: given[slot] for slot in region.arguments if slot in given}))
        for at in range(len(node.states)):
            rank = len(scan.types[after + at].shape)
            nodes.append(build_op(f"{node.name}~last.{at}", Last(axis=-rank), Result(node.name, after + at)))
        self.changed[node.name] = Built(tuple(nodes))

    # ------------------------------------------------------------ caches

    def _cache(self, name: str, type_: TensorType, following: Result) -> Result:
        """Declare a cache, and return the input with what was kept before."""
        self.caches[f"{CACHE}{name}"] = Cache(type_, following)
        return Result(f"{CACHE}{name}")

    def _count(self) -> Result:
        """The positions of new tokens, counted from the first of all."""
        places, next_ = f"{self.axis.name}.place", f"{self.axis.name}.next"
        if not self.counting:
            count = self._cache(COUNT, TensorType("float"), Result(next_))
            along, local, last = self.axis.name, f"{places}~new", f"{places}~last"
            self.counting += [
                build_op(local, Positions(axis=along), self.tokens.value),
                build_op(places, Add(left=None, right=None), Result(local), count),
                build_op(last, Last(axis=along), Result(places)),
                build_op(next_, Add(left=None, right=1.0), Result(last)),
            ]
        return Result(places)

    def _count_kept(self, extent: Extent) -> Result:
        """The positions of the tokens that are kept and of new ones."""
        places, name = self._count(), f"{name_kept(self.axis.name, extent.name)}.places"
        cache = name_kept(PLACES, extent.name)
        if f"{CACHE}{cache}" not in self.caches:
            append, kept = Append(axis=-1, into=self.total(extent), of=""), TensorType("float", (self.past(extent),))
            self.counting += self._append(name, cache, kept, places, append, extent)
        return Result(name)

    def _begin(self, name: str, initial: Result | None, cache: Result) -> tuple[list[tuple[Node, Inputs]], Result]:
        """The state before the new tokens: at the first of all a given one, if there is one."""
        if initial is None:
            return [], cache
        self._count()
        began = build_op(f"{name}~began", Greater(right=0.0), Result(f"{CACHE}{COUNT}"))
        return [
            began,
            build_op(name, Where(then=None, otherwise=None), Result(f"{name}~began"), cache, initial),
        ], Result(name)

    def _carry_sum(self, node: OpNode, position: int) -> None:
        """Add the sum of all tokens before."""
        name, shape = node.name, node.types[0].shape
        kept = node.types[0].with_shape((*shape[: len(shape) + position], *shape[len(shape) + position + 1 :]))
        carried = self._cache(name, kept, Result(f"{name}~last"))
        own = replace_fields(node, name=f"{name}~new", owner=f"{name}~new")
        repeat = build_op(f"{name}~before", NewAxis(length=1, axis="", at=position), carried)
        total = build_op(name, Add(left=None, right=None), Result(f"{name}~new"), Result(f"{name}~before"))
        last = build_op(f"{name}~last", Last(axis=position), Result(name))
        self.changed[name] = Built(((own, self.graph.inputs(name)), repeat, total, last))

    def _keep_window(self, node: OpNode, width: int, position: int) -> None:
        """Keep the last places of an operand that an op reads."""
        (slot, x), *others = self.graph.inputs(node.name).items()
        type_ = self.graph.type_of(x)
        if not width:
            return
        place = len(type_.shape) + position
        kept = (*type_.shape[:place], Axis(width), *type_.shape[place + 1 :])
        joined, whole = f"{node.name}~joined", f"{node.name}~whole"
        cache = self._cache(node.name, type_.with_shape(kept), Result(f"{node.name}~recent"))
        axis = f"{self.axis.name}.window{width}"
        op = node.op.with_axes(lambda name: axis if name == self.axis.name else name)
        run = replace_fields(node, name=whole, op=op, types=(), owner=node.owner if op.all_weights() else whole)
        append = build_op(joined, Append(axis=position, into=axis, of=""), cache, x)
        recent = build_op(f"{node.name}~recent", Recent(count=width, axis=position), Result(joined), x)
        own = build_op(f"{node.name}~new", Tail(axis=position), Result(whole), x)
        nodes = (append, (run, {slot: Result(joined), **dict(others)}), own, recent)
        self.changed[node.name] = Built(nodes, moved={Result(node.name): Result(f"{node.name}~new")})


def replace_axis(type_: TensorType, old: Axis, new: Axis) -> TensorType:
    return type_.with_shape(tuple(new if axis == old else axis for axis in type_.shape))
