"""Causality: which tokens of an input a value reads, and the shortest path of ops by which it reads later ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from modgraph.declare.indexing import Limit, place_at
from modgraph.ir.analysis.bands import Bands
from modgraph.ir.analysis.lattice import Interval, Reach, Terms, follow, join
from modgraph.ir.analysis.transfer import Transfer
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, Result
from modgraph.types import Axis, TensorType


@dataclass(frozen=True)
class Tokens:
    """The tokens of a value, most often an input: its places along one axis, counted from the last."""

    value: Result
    axis: int


@dataclass(frozen=True)
class Reads:
    """Which tokens an entry of a value reads: from `low` to `high` after its own place along an axis of the value.

    Without an axis the bounds are places of the input, whatever the entry. None is no bound.
    """

    axis: int | None
    low: Limit
    high: Limit

    @property
    def is_causal(self) -> bool:
        """Whether an entry reads no later token."""
        return self.high is not None and self.high <= 0

    def __str__(self) -> str:
        if self.axis is None:
            return "everything" if self.high is None or self.high > 0 else "the first token"
        if self.low is None or self.high is None:
            return "the past" if self.is_causal else "everything" if self.low is self.high else "the future"
        width = int(self.high) - int(self.low) + 1
        if (self.low, self.high) == (0, 0):
            return "the same token"
        if width == 1:
            return f"the token {abs(int(self.low))} places {'later' if self.low > 0 else 'before'}"
        return f"a window of {width} tokens" + (
            "" if self.is_causal else f", {min(width, int(self.high))} of them later"
        )


def find_token_axis(type_: TensorType) -> int | None:
    """The axis of tokens of an input: the first of any length; else the last one of ids, the last but one of numbers.

    Returns None for a value without such an axis.
    """
    padded = [place for place, axis in enumerate(type_.shape, start=-len(type_.shape)) if axis.is_padded]
    place = -1 if type_.dtype != "float" else -2
    return padded[0] if padded else place if len(type_.shape) >= -place else None


def list_between(graph: Graph, start: Result, end: Result) -> list[str]:
    """List the nodes that a value depends on, without those that only `start` depends on, sources first."""
    found, pending = dict[str, bool](), [end.node]
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = False
            pending.append(name)
            if name != start.node:
                pending += [each.node for each in graph.inputs(name).values() if each.node not in found]
        elif not found[name]:
            del found[name]
            found[name] = True
    return [*found]


class Causality:
    """What the values of a graph read of the tokens of one value, in training or in inference.

    With `end`, only the values on the way to it are followed.
    """

    def __init__(self, transfer: Transfer, tokens: Tokens, end: Result | None = None) -> None:
        self.transfer = transfer
        self.graph = transfer.graph
        self.tokens = tokens
        self.end = end

    @classmethod
    def build(cls, graph: Graph, tokens: Tokens, training: bool = True) -> Causality:
        """What all values of a graph read."""
        return cls(Transfer(graph, training), tokens)

    @property
    def along(self) -> Axis:
        """The axis of the tokens."""
        return self.graph.type_of(self.tokens.value).shape[self.tokens.axis]

    @cached_property
    def reaches(self) -> dict[Result, Reach]:
        """The reaches of all values that depend on the tokens."""
        names = None if self.end is None else list_between(self.graph, self.tokens.value, self.end)
        return self.transfer.run({self.tokens.value: {frozenset({(self.tokens.axis, 1)}): Interval()}}, names)

    def read(self, value: Result, along: int | None = None) -> Reads | None:
        """What a value reads of the tokens, by its index along an axis, by default the one that fits; None if it does
        not depend on them."""
        reach, type_ = self.reaches.get(value), self.graph.type_of(value)
        if not reach:
            return None
        bands = self.transfer.bands.find(value)
        axes = self._list_axes(reach, type_) if along is None else [along]
        found = [self._read_along(_limit(reach, axis, bands, type_), axis, type_) for axis in axes]
        return next((each for each in found if each.is_causal), found[0])

    def _list_axes(self, reach: Reach, type_: TensorType) -> list[int | None]:
        """The axes of a value that may be the axis of the tokens: that with its name, or all by which it reads them."""
        axes = range(-len(type_.shape), 0)
        same = [axis for axis in axes if self.along.name and type_.shape[axis] == self.along]
        read = {index for terms in reach for index, _ in terms}
        return [*same] or [axis for axis in axes if axis in read] or [None]

    def _read_along(self, reach: Reach, axis: int | None, type_: TensorType) -> Reads:
        """What an entry reads, relative to its index along an axis, or any entry."""
        spans = [_relate(terms, interval, axis, type_) for terms, interval in reach.items()]
        low, high = _join_intervals(dict(enumerate(spans)))
        last = None if self.along.size is None else self.along.size - 1
        low = None if last is not None and low is not None and low <= -last else low
        return Reads(axis, low, None if last is not None and high is not None and high >= last > 0 else high)

    def find_path(self, value: Result, along: int | None = None) -> list[Node]:
        """The nodes by which a value reads later tokens, beginning with the one that reads them; none if it reads none.

        It is a shortest such path.
        """
        reads = self.read(value, along)
        if reads is None or reads.is_causal:
            return []
        type_ = self.graph.type_of(value)
        states: dict[_Place, _State] = {}
        for terms, interval in self.reaches[value].items():
            high = _relate(terms, interval, reads.axis, type_).high
            if high is None or high > 0:
                slack = _relate(terms, Interval(), reads.axis, type_).high
                states[value, terms] = _State(None if slack is None else -slack, None, None)
        pending = [*states]
        for place in pending:  # the list grows within the loop
            for source, ahead, state in self._step_back(place, states[place]):
                most = states[place].most
                if ahead is None or most is None or ahead > most:
                    nodes = _walk(state, states)
                    return [*self._enter(nodes[0], self.transfer, self.reaches), *nodes]
                if source not in states:
                    states[source] = state
                    pending.append(source)
        return [self.graph[value.node]]

    def _enter(self, node: Node, transfer: Transfer, reaches: Mapping[Result, Reach]) -> list[Node]:
        """The nodes inside a route or a scan that read ahead of their operands, the innermost first."""
        inputs = transfer.graph.inputs(node.name)
        sources = {slot: reaches[each] for slot, each in inputs.items() if each in reaches}
        for inside, found in transfer.enter(node, sources):
            for each in inside.graph:
                if _reads_ahead(each, inside, found):
                    return [*self._enter(each, inside, found), each]
        return []

    def _step_back(self, place: _Place, state: _State) -> Iterator[tuple[_Place, Limit, _State]]:
        """The operands' ranges by which a range of a result reaches further than it may, and how far ahead the node
        itself reads."""
        (result, terms), node = place, self.graph[place[0].node]
        for slot, source in self.graph.inputs(node.name).items():
            for before, interval in self.reaches.get(source, {}).items():
                high = self._see(node, slot, result.index, before, interval, terms)
                if high is _NOT or (high is not None and state.most is not None and high <= state.most):
                    continue
                ahead = self._see(node, slot, result.index, before, Interval(interval.low, 0), terms)
                most = None if state.most is None or ahead is None else state.most - ahead
                yield (source, before), ahead, _State(most, place, node)

    def _see(self, node: Node, slot: str, index: int, terms: Terms, interval: Interval, wanted: Terms) -> Limit:
        """The upper bound of a range of a result, from one range of one operand."""
        results = self.transfer.read(node, {slot: {terms: interval}})
        found = results[index].get(wanted) if index < len(results) else None
        return _NOT if found is None else found.high


def _limit(reach: Reach, axis: int | None, bands: Bands | None, type_: TensorType) -> Reach:
    """The reach where a value may be non-zero, relative to one axis; elsewhere it reads nothing."""
    if bands is None or axis is None:
        return reach
    found = []
    for piece in bands.pieces:
        places = {each: place_at(each) for each in range(-len(type_.shape), 0)}
        for axes, limit in piece.items():
            if len(axes) == 2 and axis in axes:
                (other,) = {*axes} - {axis}
                places[other] = place_at(axis, *(limit if axes[1] == other else Interval().add(limit, -1)))
        found.append(follow(reach, [*places.values()], {}))
    return join(found)


def _reads_ahead(node: Node, transfer: Transfer, reaches: Mapping[Result, Reach]) -> bool:
    """Whether a node reads further than the index of its operands."""
    for slot, source in transfer.graph.inputs(node.name).items():
        for terms in reaches.get(source, {}):
            results = transfer.read(node, {slot: {terms: Interval()}})
            if any(each.high is None or each.high > 0 for reach in results for each in reach.values()):
                return True
    return False


_NOT = -(10**12)  # no such range


_Place = tuple[Result, Terms]


@dataclass(frozen=True)
class _State:
    """A range on the way back from a value: the bound up to which it may reach, and the place and node after it."""

    most: Limit
    place: _Place | None
    node: Node | None


def _walk(state: _State, states: Mapping[_Place, _State]) -> list[Node]:
    """The nodes from a range on to the value."""
    nodes = list[Node]()
    while state.node is not None and state.place is not None:
        nodes.append(state.node)
        state = states[state.place]
    return nodes


def _relate(terms: Terms, interval: Interval, axis: int | None, type_: TensorType) -> Interval:
    """The places that a range reaches, relative to the index along an axis."""
    factors = dict(terms)
    if axis is not None:
        factors[axis] = factors.get(axis, 0) - 1
    for index, factor in factors.items():
        size = type_.shape[index].size if isinstance(index, int) else None
        if factor:
            interval = interval.add(Interval(0, None if size is None else size - 1), factor)
    return interval


def _join_intervals(reach: dict[int, Interval] | Reach) -> Interval:
    first, *rest = reach.values()
    for each in rest:
        first = first.join(each)
    return first
