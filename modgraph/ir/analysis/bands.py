"""Bands: where a value over several axes may be non-zero, by the indices of its entries alone.

Comparisons of linear functions of `positions` make bands, and ops that keep zeros pass them on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor

from modgraph.declare.indexing import Indexing, Place, Use, align_places
from modgraph.ir.analysis.lattice import Interval
from modgraph.ir.graph import Graph
from modgraph.ir.node import OpNode, Result
from modgraph.ops.along_axis import Positions
from modgraph.ops.arithmetic import Add, Arithmetic, Divide, Multiply, Subtract
from modgraph.ops.axes import Expand, NewAxis, Transpose
from modgraph.ops.compared import Comparison, Equal, Greater, Maximum, Minimum, Where
from modgraph.ops.elementwise import Identity, MaskPadding
from modgraph.ops.linear import Contract
from modgraph.ops.shape import Rename
from modgraph.ops.situation import StopGradient
from modgraph.ops.zeros import ANYWHERE

Axes = tuple[int, ...]  # (j,) for the index of axis j itself, (i, j) for that of j minus that of i; i < j < 0
LAST = 0  # stands behind axes whose indices count from the last token, and for the place of that token in a function
Piece = Mapping[Axes, Interval]  # a conjunction of limits
MOST_PIECES = 8
GRAIN = 2**8  # numbers that are multiples of 1 / GRAIN up to GRAIN times an index have no rounding
MOVES = (Expand, Identity, NewAxis, Rename, StopGradient, Transpose)  # a number of the result is one of the operand


@dataclass(frozen=True)
class Bands:
    """Where a value may be non-zero: in the union of `pieces`. If `exact`, it is one there."""

    pieces: tuple[Piece, ...]
    exact: bool = False


@dataclass(frozen=True)
class Linear:
    """A value that is a linear function of the indices of its axes, of some counted from the `last` token."""

    factors: Mapping[int, Fraction]
    constant: Fraction
    last: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether float32 computes it without rounding."""
        numbers = (*self.factors.values(), self.constant)
        return all(GRAIN % each.denominator == 0 and abs(each) <= GRAIN for each in numbers)


class BandFinder:
    """Finds the bands of the values of a graph, as far as they are asked for."""

    def __init__(self, graph: Graph, places: Collection[Result] = ()) -> None:
        """`places` are positions of tokens up to the last, along axes that end with it."""
        self.graph = graph
        self._nodes = iter(graph)  # those not yet read, sources first
        self._read: set[str] = set()
        self._bands: dict[Result, Bands] = {}
        aligned = Linear({-1: Fraction(1), LAST: Fraction(1)}, Fraction(0), last=True)
        self._linear: dict[Result, Linear] = dict.fromkeys(places, aligned)

    def find(self, result: Result) -> Bands | None:
        """The bands of a value; None if it may be non-zero anywhere."""
        while result.node not in self._read:
            node = next(self._nodes)
            self._read.add(node.name)
            if isinstance(node, OpNode) and len(node.types) == 1:
                self._read_node(node, Result(node.name))
        return self._bands.get(result)

    def _read_node(self, node: OpNode, result: Result) -> None:
        sources = [*self.graph.inputs(node.name).values()]
        if result not in self._linear and (
            isinstance(node.op, Positions) or any(each in self._linear for each in sources)
        ):
            linear = self._find_linear(node)
            if linear is not None and linear.is_exact:
                self._linear[result] = linear
        if isinstance(node.op, Comparison) or any(each in self._bands for each in sources):
            bands = self._find(node)
            if bands is not None:
                self._bands[result] = bands

    def _find(self, node: OpNode) -> Bands | None:
        op = node.op
        if isinstance(op, Comparison) and (found := self._compare(node, op)) is not None:
            return found
        known, count = self._list_moved(node), len(self.graph.inputs(node.name))
        every = len(known) == count
        of_choices = every and all(each.exact for each in known.values())
        of_none = (isinstance(op, Subtract) and op.left == 1) or (isinstance(op, Equal) and op.right == 0)
        if of_none and of_choices and count == 1:
            return _complement(known[0])
        if isinstance(op, Maximum) and len(known) == 2:
            return _unite([*known.values()], exact=of_choices)
        if isinstance(op, Minimum | Multiply) and len(known) == 2 and of_choices:
            return _intersect([*known.values()], exact=True)
        if (isinstance(op, Greater) and op.right == 0 and of_choices) or isinstance(op, MOVES):
            return known.get(0)
        if isinstance(op, Where):
            return self._choose(op, known)
        zeroing = [place for place in op.zero_with() if place < count]
        whole = [found for place in zeroing if (found := self._move(node, place, pointwise=True)) is not None]
        if isinstance(op, Contract):
            whole += known.values()
        if known and every and op.propagate_choices(self.graph.signature(node), (ANYWHERE,) * count) is not None:
            whole += filter(None, [_unite([*known.values()])])
        return _intersect(whole) if whole else None

    def _list_moved(self, node: OpNode) -> dict[int, Bands]:
        """The bands of operands that have some, in axes of the result, by operand."""
        moved = ((place, self._move(node, place)) for place in range(len(self.graph.inputs(node.name))))
        return {place: bands for place, bands in moved if bands is not None}

    def _choose(self, op: Where, known: Mapping[int, Bands]) -> Bands | None:
        """The bands of `where`, of its condition and its values by operand."""
        condition, other = known.get(0), known.get(1 + (op.then is None))
        if condition is None:
            return _unite([known[1], known[2]]) if {1, 2} <= {*known} and op.then is op.otherwise is None else None
        inside = _intersect([condition, known[1]]) if op.then is None and 1 in known else condition
        one = condition.exact and (op.then == 1 or (op.then is None and 1 in known and known[1].exact))
        if op.otherwise == 0:
            return Bands(inside.pieces, one)
        if op.otherwise is None and other is not None:
            return _unite([inside, other], exact=one and other.exact)
        return None

    def _move(self, node: OpNode, number: int, pointwise: bool = False) -> Bands | None:
        """The bands of an operand in axes of the result, of which it may be an elementwise function; limits of other
        axes are dropped."""
        found = self._bands.get([*self.graph.inputs(node.name).values()][number])
        if found is None:
            return None
        to = self._match_axes(node, number, pointwise)
        pieces = tuple(_rename_piece(piece, to) for piece in found.pieces)
        whole = all(len(new) == len(old) for new, old in zip(pieces, found.pieces, strict=True))
        return Bands(pieces, found.exact and whole) if all(pieces) else None

    def _match_axes(self, node: OpNode, number: int, pointwise: bool = False) -> dict[int, int]:
        """The axis of the first result for each axis of an operand that is read at the same index."""
        signature = self.graph.signature(node)
        if pointwise:
            return _match_places(align_places(signature.operands[number].shape, signature.results[0].shape))
        indexing: Callable[[Use], Indexing] = node.op.indexing
        readings = [each for each in indexing(Use(signature))[0] if each.operand == number]
        return _match_places(readings[0].places) if len(readings) == 1 else {}

    # ------------------------------------------------------------ comparisons of positions

    def _compare(self, node: OpNode, op: Comparison) -> Bands | None:
        """The bands where a comparison of linear functions holds."""
        sides = [self._linear_of(node, slot) for slot in range(len(self.graph.inputs(node.name)))]
        if len(sides) == 1 and op.right is not None:
            sides.append(Linear({}, Fraction(op.right)))
        if None in sides or len(sides) != 2:
            return None
        left, right = sides
        assert left is not None and right is not None
        difference = _combine(left, right, Fraction(-1))
        axes = sorted(difference.factors)
        last = (LAST,) if difference.last and len(axes) == 2 else ()
        if LAST in axes or not 1 <= len(axes) <= 2:
            return None
        factor = difference.factors[axes[-1]]
        if len(axes) == 2 and difference.factors[axes[0]] != -factor:
            return None
        at = -difference.constant / factor
        if op.symbol == "!=":
            return _complement(Bands(({(*axes, *last): _solve("==", False, at)},), exact=True))
        return Bands(({(*axes, *last): _solve(op.symbol, factor < 0, at)},), exact=True)

    def _linear_of(self, node: OpNode, number: int) -> Linear | None:
        """The linear function that an operand is, in axes of the node's result."""
        found = self._linear.get([*self.graph.inputs(node.name).values()][number])
        if found is None:
            return None
        to = {**self._match_axes(node, number), LAST: LAST}
        if not {*found.factors} <= {*to}:
            return None
        return Linear({to[axis]: factor for axis, factor in found.factors.items()}, found.constant, found.last)

    def _find_linear(self, node: OpNode) -> Linear | None:
        op, count = node.op, len(self.graph.inputs(node.name))
        if isinstance(op, Positions):
            return Linear({-1: Fraction(1)}, Fraction(0))
        if isinstance(op, (*MOVES, MaskPadding)):
            return self._linear_of(node, 0)
        if not isinstance(op, Add | Subtract | Multiply | Divide):
            return None
        of_values = iter([self._linear_of(node, number) for number in range(count)])
        left, right = (
            next(of_values) if constant is None else Linear({}, Fraction(constant)) for constant in op.constants
        )
        return None if left is None or right is None else _compute(op, left, right)


def _compute(op: Arithmetic, left: Linear, right: Linear) -> Linear | None:
    if isinstance(op, Add | Subtract):
        return _combine(left, right, Fraction(1 if isinstance(op, Add) else -1))
    if isinstance(op, Multiply) and not left.factors:
        left, right = right, left
    if right.factors or (isinstance(op, Divide) and right.constant == 0):
        return None
    by = right.constant if isinstance(op, Multiply) else 1 / right.constant
    return _combine(Linear({}, Fraction(0)), left, by)


def _combine(left: Linear, right: Linear, factor: Fraction) -> Linear:
    """left + factor · right."""
    axes = {*left.factors, *right.factors}
    none = Fraction(0)
    factors = {axis: left.factors.get(axis, none) + factor * right.factors.get(axis, none) for axis in axes}
    kept = {axis: each for axis, each in factors.items() if each}
    return Linear(kept, left.constant + factor * right.constant, left.last or right.last)


def _solve(sign: str, mirrored: bool, bound: Fraction) -> Interval:
    """The whole numbers x with `x sign bound`, or `bound sign x`."""
    sign = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign) if mirrored else sign
    match sign:
        case "<":
            return Interval(None, ceil(bound) - 1)
        case "<=":
            return Interval(None, floor(bound))
        case ">":
            return Interval(floor(bound) + 1, None)
        case ">=":
            return Interval(ceil(bound), None)
        case _:
            return Interval(ceil(bound), floor(bound))


# ---------------------------------------------------------------- pieces


def _intersect(found: list[Bands], exact: bool = False) -> Bands:
    pieces = []
    for combined in product(*(each.pieces for each in found)):
        piece: dict[Axes, Interval] = {}
        for axes, limit in (item for each in combined for item in each.items()):
            piece[axes] = piece[axes].meet(limit) if axes in piece else limit
        pieces.append(piece)
    return Bands(tuple(pieces), exact) if len(pieces) <= MOST_PIECES else Bands(found[0].pieces)


def _unite(found: list[Bands], exact: bool = False) -> Bands | None:
    pieces = tuple(piece for each in found for piece in each.pieces)
    return Bands(pieces, exact) if len(pieces) <= MOST_PIECES else None


def _complement(bands: Bands) -> Bands | None:
    """The bands of one less a choice: outside of each piece, where one of its limits is broken."""
    outside = []
    for piece in bands.pieces:
        broken = list[Piece]()
        for axes, (low, high) in piece.items():
            broken += [{axes: Interval(None, low - 1)}] if low is not None else []
            broken += [{axes: Interval(high + 1, None)}] if high is not None else []
        outside.append(Bands(tuple(broken), exact=True))
    found = _intersect(outside, exact=True)
    return found if found.exact else None


def _rename_piece(piece: Piece, to: Mapping[int, int]) -> Piece:
    found: dict[Axes, Interval] = {}
    to = {**to, LAST: LAST}
    for axes, (low, high) in piece.items():
        if all(axis in to for axis in axes):
            new = tuple(to[axis] for axis in axes)
            if new != tuple(sorted(new)):
                low, high = (None if each is None else -each for each in (high, low))
            found[tuple(sorted(new))] = Interval(low, high)
    return found


def _match_places(places: tuple[Place, ...]) -> dict[int, int]:
    found = {}
    for axis, place in enumerate(places, start=-len(places)):
        if len(place.terms) == 1 and (place.low, place.high) == (0, 0):
            ((index, factor),) = place.terms
            if isinstance(index, int) and factor == 1:
                found[axis] = index
    return found
