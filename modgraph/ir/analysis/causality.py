"""Causality: which tokens of an input a value reads, and the shortest path of ops by which it reads later ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from modgraph.declare.indexing import Limit
from modgraph.ir.analysis.forms import Interval, Reach, Terms
from modgraph.ir.analysis.transfer import Transfer
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, Result
from modgraph.types import TensorType


@dataclass(frozen=True)
class Tokens:
    """The tokens of an input: its places along one axis, counted from the last."""

    input: str
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
        return f"a window of {width} tokens" if width > 1 else f"the token {abs(int(self.low))} places away"


@dataclass(frozen=True)
class Step:
    """A node on a path from later tokens; `ahead` is how many places further its result reads than its operand."""

    node: Node
    ahead: Limit


def find_token_axis(type_: TensorType) -> int | None:
    """The axis of tokens of an input: the first of any length; else the last one of ids, the last but one of numbers.

    Returns None for a value without such an axis.
    """
    padded = [place for place, axis in enumerate(type_.shape, start=-len(type_.shape)) if axis.is_padded]
    place = -1 if type_.dtype != "float" else -2
    return padded[0] if padded else place if len(type_.shape) >= -place else None


class Causality:
    """What the values of a graph read of the tokens of one input, in training or in inference."""

    def __init__(self, graph: Graph, tokens: Tokens, training: bool = True) -> None:
        self.graph = graph
        self.tokens = tokens
        self.training = training
        self.transfer = Transfer(graph, training)

    @cached_property
    def reaches(self) -> dict[Result, Reach]:
        """The reaches of all values that depend on the input."""
        return self.transfer.run({Result(self.tokens.input): {frozenset({(self.tokens.axis, 1)}): Interval()}})

    def read(self, value: Result) -> Reads | None:
        """What a value reads of the tokens; None if it does not depend on them."""
        reach, type_ = self.reaches.get(value), self.graph.type_of(value)
        if not reach:
            return None
        found = [self._read_along(reach, axis, type_) for axis in self._list_axes(reach, type_)]
        return next((each for each in found if each.is_causal), found[0])

    def _list_axes(self, reach: Reach, type_: TensorType) -> list[int | None]:
        """The axes of a value that may be the axis of the tokens: that with its name, or all by which it reads them."""
        of_input = self.graph[self.tokens.input].types[0].shape[self.tokens.axis]
        axes = range(-len(type_.shape), 0)
        same = [axis for axis in axes if of_input.name and type_.shape[axis] == of_input]
        read = {index for terms in reach for index, _ in terms}
        return [*same] or [axis for axis in axes if axis in read] or [None]

    def _read_along(self, reach: Reach, axis: int | None, type_: TensorType) -> Reads:
        """What an entry reads, relative to its index along an axis, or any entry."""
        spans = [_relate(terms, interval, axis, type_) for terms, interval in reach.items()]
        low, high = _join_intervals(dict(enumerate(spans)))
        size = self.graph[self.tokens.input].types[0].shape[self.tokens.axis].size
        last = None if size is None else size - 1
        low = None if last is not None and low is not None and low <= -last else low
        return Reads(axis, low, None if last is not None and high is not None and high >= last > 0 else high)

    def find_path(self, value: Result) -> list[Step]:
        """The nodes by which a value reads later tokens, the one that reaches furthest first; empty if there is none.

        It is a shortest path from the input, without the nodes before.
        """
        reads = self.read(value)
        if reads is None or reads.is_causal:
            return []
        type_ = self.graph.type_of(value)
        states: dict[tuple[Result, Terms], _State] = {}
        for terms, interval in self.reaches[value].items():
            high = _relate(terms, interval, reads.axis, type_).high
            if high is None or high > 0:
                slack = None if high is None or interval.high is None else interval.high - high
                states.setdefault((value, terms), _State(slack, None, None, 0))
        pending = [*states]
        for key in pending:  # the list grows within the loop
            if key[0].node == self.tokens.input:
                return self._walk(key, states)
            for source, state in self._step_back(key, states[key]):
                if source not in states:
                    states[source] = state
                    pending.append(source)
        return []

    def _step_back(self, key: tuple[Result, Terms], state: _State) -> Iterator[tuple[tuple[Result, Terms], _State]]:
        """The operands' forms by which a form of a result reaches further than it may."""
        (result, terms), node = key, self.graph[key[0].node]
        for slot, source in self.graph.inputs(node.name).items():
            for before, interval in self.reaches.get(source, {}).items():
                high = self._see(node, slot, result.index, before, interval, terms)
                if high is _NOT or (high is not None and state.most is not None and high <= state.most):
                    continue
                ahead = self._see(node, slot, result.index, before, Interval(interval.low, 0), terms)
                most = None if state.most is None or ahead is None else state.most - ahead
                yield (source, before), _State(most, key, node, ahead)

    def _see(self, node: Node, slot: str, index: int, terms: Terms, interval: Interval, wanted: Terms) -> Limit:
        """The upper bound of a form of a result, from one form of one operand."""
        results = self.transfer.read(node, {slot: {terms: interval}})
        found = results[index].get(wanted) if index < len(results) else None
        return _NOT if found is None else found.high

    def _walk(self, key: tuple[Result, Terms], states: dict[tuple[Result, Terms], _State]) -> list[Step]:
        """The steps from the one that reaches furthest to the value."""
        steps, state = list[Step](), states[key]
        while state.node is not None and state.key is not None:
            steps.append(Step(state.node, state.ahead))
            state = states[state.key]
        furthest = max(range(len(steps)), key=lambda at: (steps[at].ahead is None, steps[at].ahead or 0, at))
        return steps[furthest:]


_NOT = -(10**12)  # no such form


@dataclass(frozen=True)
class _State:
    """A form on the way back from a value: the bound up to which it may reach, and the next state towards the value."""

    most: Limit
    key: tuple[Result, Terms] | None
    node: Node | None
    ahead: Limit


def _relate(terms: Terms, interval: Interval, axis: int | None, type_: TensorType) -> Interval:
    """The places that a form reaches, relative to the index along an axis."""
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
