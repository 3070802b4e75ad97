"""Values of a scan's step that are affine in a state, as sums of terms whose factors do not depend on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, Result
from modgraph.ops.along_axis import Mean, Sum
from modgraph.ops.arithmetic import Add, Divide, Multiply, Pairwise, Subtract
from modgraph.ops.axes import NewAxis, Transpose
from modgraph.ops.elementwise import Identity
from modgraph.ops.linear import Contract
from modgraph.ops.op import Op
from modgraph.ops.shape import Rename
from modgraph.types import Axis, Shape

FRESH = 1_000  # the first label of an axis that the state lacks
Labels = tuple[int | None, ...]


class NotAffine(Exception):
    """A value is not affine in the state, and why."""


@dataclass(frozen=True)
class Factor:
    """A value that does not depend on the state. `labels` are the labels of its axes, None for one of length 1.

    A label is the place of the state's axis that the axis is aligned with. An `inverse` factor divides.
    """

    value: Result
    labels: Labels
    inverse: bool = False

    @property
    def axes(self) -> frozenset[int]:
        return frozenset(label for label in self.labels if label is not None)


@dataclass(frozen=True)
class Term:
    """A number times factors; with `state`, times the state, or its product with `inner` summed over the axis
    `over`."""

    number: float = 1.0
    factors: tuple[Factor, ...] = ()
    state: bool = False
    over: int | None = None
    inner: tuple[Factor, ...] = ()

    def relabel(self, old: int, new: int) -> Term:
        if new == self.over and any(old in each.axes for each in self.inner):
            raise NotAffine("a full matrix multiplies the state")

        def change(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
            return tuple(
                replace(each, labels=tuple(new if label == old else label for label in each.labels)) for each in factors
            )

        return replace(self, factors=change(self.factors), inner=change(self.inner))


@dataclass(frozen=True)
class Affine:
    """A sum of terms; `labels` are those of its axes."""

    labels: tuple[int, ...]
    terms: tuple[Term, ...]

    def relabel(self, old: int, new: int) -> Affine:
        labels = tuple(new if label == old else label for label in self.labels)
        return Affine(labels, tuple(each.relabel(old, new) for each in self.terms))

    def times(self, number: float, *factors: Factor) -> tuple[Term, ...]:
        return tuple(replace(each, number=each.number * number, factors=each.factors + factors) for each in self.terms)


Operand = Affine | Result | float


def describe(node: Node) -> str:
    """Name an op and its place in the spec."""
    what = f'"{node.op.name}"' if isinstance(node, OpNode) else f"{node.kind} {node.name}"
    return f"{what} ({node.span})" if node.span else what


def find_places(node: OpNode, side: int, graph: Graph) -> list[int]:
    """The places in the result of arithmetic of the axes of its left or right operand."""
    places = graph.signature(node).axes["places"]
    return [len(node.types[0].shape) + place for place in places[-1 if side else 0]]


@dataclass
class AffineReader:
    """Reads the following value of a state as an affine function of it. `varying` are the nodes that depend on it."""

    graph: Graph
    state: str
    varying: Collection[str]
    known: dict[Result, Affine] = field(default_factory=dict)
    fresh: count[int] = field(default_factory=lambda: count(FRESH))

    def read(self, following: Result) -> tuple[Term, ...]:
        """The terms of the following value. Raises `NotAffine`."""
        shape = self.graph.type_of(Result(self.state)).shape
        self.known[Result(self.state)] = Affine(tuple(range(len(shape))), (Term(state=True),))
        needed = self.graph.ancestors([following.node])
        for node in self.graph:
            if node.name in needed and node.name in self.varying and Result(node.name) not in self.known:
                if not isinstance(node, OpNode) or len(node.types) > 1 or type(node.op) not in RULES:
                    raise NotAffine(f"{describe(node)} is not linear in the state")
                self.known[Result(node.name)] = RULES[type(node.op)](self, node)
        if following.node not in self.varying:
            return (Term(factors=(Factor(following, self._place(shape, range(len(shape)))),)),)
        found = self.known[following]
        for place, label in enumerate(found.labels):
            if label >= FRESH:
                found = found.relabel(label, place)
        if found.labels != tuple(range(len(shape))):
            raise NotAffine("its axes change places from step to step")
        return found.terms

    # ------------------------------------------------------------ rules of ops

    def pairwise(self, node: OpNode) -> Affine:
        """The sum, the product or the quotient of two values, of which one at least is affine."""
        labels, (left, right) = self._align(node, self._operands(node))
        multiplies = isinstance(node.op, Multiply | Divide)
        if multiplies and isinstance(left, Affine) and isinstance(right, Affine):
            raise NotAffine(f"{describe(node)} multiplies values of the state")
        if isinstance(node.op, Divide) and not isinstance(left, Affine):
            raise NotAffine(f"{describe(node)} divides by a value of the state")
        if multiplies:
            affine, other = (left, right) if isinstance(left, Affine) else (right, left)
            assert isinstance(affine, Affine)
            divides = isinstance(node.op, Divide)
            if isinstance(other, float):
                return Affine(labels, affine.times(1 / other if divides else other))
            assert isinstance(other, Result)
            places = find_places(node, 1 if affine is left else 0, self.graph)
            factor = self._factor(node, other, [labels[place] for place in places], divides)
            return Affine(labels, affine.times(1.0, factor))
        terms: list[Term] = []
        for side, each in enumerate((left, right)):
            sign = -1.0 if side and isinstance(node.op, Subtract) else 1.0
            if isinstance(each, Affine):
                terms += each.times(sign)
            elif isinstance(each, float):
                terms.append(Term(sign * each))
            else:
                places = find_places(node, side, self.graph)
                terms.append(Term(sign, (self._factor(node, each, [labels[place] for place in places]),)))
        return Affine(labels, tuple(terms))

    def contract(self, node: OpNode) -> Affine:
        """The sum of products with a value over an axis."""
        operands = self._operands(node)
        if all(isinstance(each, Affine) for each in operands):
            raise NotAffine(f"{describe(node)} multiplies values of the state")
        side = 0 if isinstance(operands[0], Affine) else 1
        affine, other = operands[side], operands[1 - side]
        assert isinstance(affine, Affine) and isinstance(other, Result)
        terms, result = self.graph.signature(node).axes["equation"].replace("...", "").split("->")
        letters = terms.split(",")
        known = dict(zip(letters[side], affine.labels, strict=True))
        known |= {letter: next(self.fresh) for letter in letters[1 - side] if letter not in known}
        factor = self._factor(node, other, [known[letter] for letter in letters[1 - side]])
        (over,) = {*letters[side]} & {*letters[1 - side]} - {*result}
        left = tuple(known[letter] for letter in result)
        return Affine(left, self._sum(node, affine.times(1.0, factor), known[over]))

    def sum(self, node: OpNode) -> Affine:
        """The sum, or the mean, over an axis."""
        (affine,) = self._operands(node)
        assert isinstance(affine, Affine)
        place = len(affine.labels) + self.graph.signature(node).axes["position"]
        length = self.graph.signature(node).operands[0].shape[place].size
        if length is None:
            raise NotAffine(f"{describe(node)} is over an axis of any length")
        terms = affine.times(1 / length if isinstance(node.op, Mean) else 1.0)
        rest = affine.labels[:place] + affine.labels[place + 1 :]
        return Affine(rest, self._sum(node, terms, affine.labels[place]))

    def keep(self, node: OpNode) -> Affine:
        (affine,) = self._operands(node)
        assert isinstance(affine, Affine)
        return affine

    def transpose(self, node: OpNode) -> Affine:
        affine = self.keep(node)
        order = self.graph.signature(node).axes["order"]
        return Affine(tuple(affine.labels[at] for at in order), affine.terms)

    def new_axis(self, node: OpNode) -> Affine:
        affine = self.keep(node)
        at = len(affine.labels) + 1 + self.graph.signature(node).axes["place"]
        return Affine((*affine.labels[:at], next(self.fresh), *affine.labels[at:]), affine.terms)

    # ------------------------------------------------------------ operands

    def _operands(self, node: OpNode) -> list[Operand]:
        values = iter(self.graph.inputs(node.name).values())
        constants = node.op.constants if isinstance(node.op, Pairwise) else (None,) * len(self.graph.inputs(node.name))
        return [float(each) if each is not None else self._value(next(values)) for each in constants]

    def _value(self, result: Result) -> Operand:
        return self.known[result] if result.node in self.varying else result

    def _align(self, node: OpNode, operands: Sequence[Operand]) -> tuple[tuple[int, ...], list[Operand]]:
        """The labels of a result's axes, and the operands; axes of two affine values that meet get one label."""
        same: dict[int, int] = {}
        found: list[int | None] = [None] * len(node.types[0].shape)
        for side, each in enumerate(operands):
            labels = each.labels if isinstance(each, Affine) else ()
            for label, place in zip(labels, find_places(node, side, self.graph) if labels else (), strict=True):
                known = found[place]
                first, last = sorted((label, label if known is None else known))
                if first != last and last < FRESH:
                    raise NotAffine(f"{describe(node)} adds values of the state whose axes have changed places")
                found[place] = first
                same |= {last: first} if first != last else {}
        for old, new in same.items():
            operands = [each.relabel(old, new) if isinstance(each, Affine) else each for each in operands]
        return tuple(next(self.fresh) if label is None else label for label in found), [*operands]

    def _factor(self, node: OpNode, value: Result, labels: Sequence[int], inverse: bool = False) -> Factor:
        return Factor(value, self._place(self.graph.type_of(value).shape, labels), inverse)

    def _place(self, shape: Shape, labels: Sequence[int]) -> Labels:
        """The labels of a factor's axes; an axis of length 1 is broadcast."""
        of_state = self.graph.type_of(Result(self.state)).shape

        def is_broadcast(axis: Axis, label: int) -> bool:
            return axis.size == 1 and (label >= FRESH or of_state[label].size != 1)

        return tuple(None if is_broadcast(axis, label) else label for axis, label in zip(shape, labels, strict=True))

    def _sum(self, node: OpNode, terms: tuple[Term, ...], label: int) -> tuple[Term, ...]:
        if label >= FRESH or any(not each.state or each.over is not None for each in terms):
            raise NotAffine(f"{describe(node)} sums more than products with the state")
        found = []
        for each in terms:
            inner = tuple(factor for factor in each.factors if label in factor.axes)
            outer = tuple(factor for factor in each.factors if label not in factor.axes)
            found.append(replace(each, factors=outer, inner=inner, over=label))
        return tuple(found)


RULES: Mapping[type[Op], Callable[[AffineReader, OpNode], Affine]] = {
    Add: AffineReader.pairwise,
    Subtract: AffineReader.pairwise,
    Multiply: AffineReader.pairwise,
    Divide: AffineReader.pairwise,
    Contract: AffineReader.contract,
    Sum: AffineReader.sum,
    Mean: AffineReader.sum,
    Identity: AffineReader.keep,
    Rename: AffineReader.keep,
    Transpose: AffineReader.transpose,
    NewAxis: AffineReader.new_axis,
}
