"""Recognises attention that a graph computes as scores, softmax and sum, by data flow alone.

Each axis of the scores has a letter: M is that of keys, over which softmax and sum run, N that of queries, W the width
of queries and keys. A value that broadcasts to the scores has the letters of its axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from modgraph.declare.indexing import Use
from modgraph.ir import Graph, OpNode, Result
from modgraph.ir.analysis.bands import LAST, BandFinder
from modgraph.ops.along_axis import Softmax
from modgraph.ops.arithmetic import Add, Arithmetic, Divide, Multiply, Subtract
from modgraph.ops.axes import Expand, NewAxis, Transpose
from modgraph.ops.choice import MaskedSoftmax
from modgraph.ops.dot_product import OPEN, Bounds, Piece
from modgraph.ops.elementwise import Identity, Tanh
from modgraph.ops.linear import Contract
from modgraph.ops.shape import Rename
from modgraph.passes.cache_names import list_places

VIEWS = (Transpose, Rename, Identity)
MOST_PIECES = 4


@dataclass(frozen=True)
class Term:
    """A value, the letters of its axes, and a factor."""

    value: Result
    letters: str
    factor: float = 1.0

    def rename(self, to: Mapping[str, str]) -> Term:
        return replace(self, letters="".join(to.get(each, each) for each in self.letters))


@dataclass(frozen=True)
class Product:
    """Queries and keys that are contracted, by a factor."""

    queries: Term
    keys: Term
    factor: float


@dataclass(frozen=True)
class Scores:
    """cap · tanh(Σ products / cap) + Σ biases; if `is_shifted`, plus a number that a softmax ignores."""

    products: tuple[Product, ...]
    biases: tuple[Term, ...] = ()
    cap: float | None = None
    is_shifted: bool = False


@dataclass(frozen=True)
class Attention:
    """Attention that ends at the sum `node`: its operands, and the letters of its result.

    Keys are visible where no mask is zero, and in one of the pieces if there are any; of `last` queries the pieces
    count places from the ends. `inside` are nodes that compute scores and weights.
    """

    node: str
    scores: Scores
    values: Term
    result: str
    masks: tuple[Term, ...]
    sink: Term | None
    pieces: tuple[Piece, ...]
    inside: tuple[str, ...]
    last: bool = False


class Unfit(Exception):
    """Raised for attention that cannot be one op, with the reason."""


class Recogniser:
    """Recognises attention in one graph. With `counts_places`, of tokens that caches keep too, whose positions it
    knows relative to the last token."""

    def __init__(self, graph: Graph, counts_places: bool = True) -> None:
        self.graph = graph
        self.bands = BandFinder(graph, list_places(graph) if counts_places else ())
        self.inside: list[str] = []
        self.row = ""  # the letter of queries
        self.last: bool | None = None  # whether bands count places from the last token; not known yet

    def recognise(self, node: OpNode) -> Attention | None:
        """Recognise the attention that ends at a contraction, if any. Raises `Unfit`."""
        if not isinstance(node.op, Contract):
            return None
        terms, result, over = self._read_equation(node)
        sources = [*self.graph.inputs(node.name).values()]
        for at in (0, 1):
            gates, values = (Term(sources[each], terms[each]).rename({over: "M"}) for each in (at, 1 - at))
            self.inside, self.row, self.last = [], "", None
            softmax = self._find_softmax(gates)
            found = None if softmax is None else self._read_attention(node, softmax, values, result)
            if found is not None:
                return found
        return None

    def _read_equation(self, node: OpNode) -> tuple[list[str], str, str]:
        """Read the letters of a contraction: of its operands, of its result, and of the summed axis."""
        terms, result = self.graph.signature(node).axes["equation"].replace("...", "").lower().split("->")
        (over,) = {*terms} - {*result, ","}
        return terms.split(","), result, over

    def _follow(self, term: Term, number: int = 0) -> Term | None:
        """Follow a value to an operand of its op. None for an axis that the value does not read at its own index."""
        node = self.graph[term.value.node]
        if not isinstance(node, OpNode) or term.value.index:
            return None
        signature, sources = self.graph.signature(node), [*self.graph.inputs(node.name).values()]
        shape, letters = signature.operands[number].shape, list[str]()
        readings = [each for each in node.op.indexing(Use(signature))[0] if each.operand == number]
        if len(readings) != 1:
            return None
        for axis, place in zip(shape, readings[0].places, strict=True):
            index = place.terms[0][0] if len(place.terms) == 1 else None
            if not isinstance(index, int) or (place.low, place.high, place.terms[0][1]) != (0, 0, 1):
                return None
            if axis.size != signature.results[0].shape[index].size:
                return None
            letters.append(term.letters[index])
        return Term(sources[number], "".join(letters), term.factor)

    # ------------------------------------------------------------ from the sum to the softmax

    def _find_softmax(self, gates: Term) -> Term | None:
        """Find the softmax over keys behind weights; its value has the letters of the scores."""
        value: Term | None = gates
        between = ""
        while value is not None and isinstance(node := self.graph[value.value.node], OpNode):
            self.inside.append(node.name)
            if isinstance(node.op, Softmax | MaskedSoftmax):
                if value.letters[self.graph.signature(node).axes["position"]] != "M":
                    return None
                if between and self._read(self._list_operands(value)["x"]) is not None:
                    raise Unfit(f'"{between}" changes the weights between softmax and sum')
                return None if between else value
            between = between or ("" if isinstance(node.op, VIEWS) else node.op.name)
            value = self._follow(value) if self.graph.inputs(node.name) else None
        return None

    def _list_operands(self, softmax: Term) -> dict[str, Term]:
        """List the operands of a softmax by slot; a choice and a sink may lack axes."""
        node = self.graph[softmax.value.node]
        assert isinstance(node, OpNode), "a softmax is an op"
        readings = {each.operand: each for each in node.op.indexing(Use(self.graph.signature(node)))[0]}
        found = {}
        for number, (slot, value) in enumerate(self.graph.inputs(node.name).items()):
            letters = ""
            for place in readings[number].places:
                if not place.terms:
                    raise Unfit(f"its {slot} broadcasts along an axis of one place")
                index = place.terms[0][0]
                letters += softmax.letters[index] if isinstance(index, int) else "M"
            found[slot] = Term(value, letters)
        return found

    def _read_attention(self, node: OpNode, softmax: Term, values: Term, result: str) -> Attention | None:
        operands = self._list_operands(softmax)
        scores = self._read(operands["x"])
        if scores is None:
            return None
        if scores.is_shifted and "sink" in operands:
            raise Unfit("a number is added to scores that share their softmax with a sink")
        rows = self._list_rows(scores, values)
        masks, pieces = self._read_choice(operands["choice"], rows) if "choice" in operands else ((), ())
        to = {self.row or next(iter(rows), "N"): "N"}
        products = tuple(
            replace(each, queries=each.queries.rename(to), keys=each.keys.rename(to)) for each in scores.products
        )
        return Attention(
            node.name,
            replace(scores, products=products, biases=tuple(each.rename(to) for each in scores.biases)),
            values.rename(to),
            "".join(to.get(each, each) for each in result),
            tuple(each.rename(to) for each in masks),
            operands["sink"].rename(to) if "sink" in operands else None,
            pieces,
            tuple(dict.fromkeys(self.inside)),
            bool(self.last),
        )

    def _list_rows(self, scores: Scores, values: Term) -> list[str]:
        """List the axes that only queries have, the longest first."""
        first = scores.products[0].queries
        shape = dict(zip(first.letters, self.graph.type_of(first.value).shape, strict=True))
        others = {"W", *values.letters, *(letter for each in scores.products for letter in each.keys.letters)}
        kept = [each for each in first.letters if each not in others]
        return sorted(kept, key=lambda each: -(shape[each].size or float("inf")))

    # ------------------------------------------------------------ scores

    def _read(self, term: Term | None) -> Scores | None:
        """Read scores; None without a product of queries and keys in them."""
        if term is None or term.value.index or not isinstance(node := self.graph[term.value.node], OpNode):
            return None
        before = len(self.inside)
        self.inside.append(node.name)
        found = self._read_op(node, term)
        if found is None:
            del self.inside[before:]
        return found

    def _read_op(self, node: OpNode, term: Term) -> Scores | None:
        match node.op:
            case Contract():
                return self._read_product(node, term)
            case Tanh():
                return self._read_cap(term)
            case Multiply() | Divide() if (factor := _find_factor(node.op)) is not None:
                found = self._follow(term)
                return None if found is None else self._read(replace(found, factor=term.factor * factor))
            case Add() | Subtract():
                return self._read_sum(node.op, term)
            case Transpose() | Rename() | Identity():
                return self._read(self._follow(term))
        for number in range(len(self.graph.inputs(node.name))):
            found = self._follow(term, number)
            if found is not None and len(found.letters) == len(term.letters) and self._read(found) is not None:
                raise Unfit(f'"{node.op.name}" changes the scores')
        return None

    def _read_product(self, node: OpNode, term: Term) -> Scores | None:
        terms, result, over = self._read_equation(node)
        to = {**dict(zip(result, term.letters, strict=True)), over: "W"}
        sources = self.graph.inputs(node.name).values()
        operands = [Term(value, each).rename(to) for value, each in zip(sources, terms, strict=True)]
        keys = [each for each in operands if "M" in each.letters]
        queries = [each for each in operands if "M" not in each.letters]
        return Scores((Product(queries[0], keys[0], term.factor),)) if len(keys) == 1 else None

    def _read_cap(self, term: Term) -> Scores | None:
        inner = self._follow(term)
        found = None if inner is None else self._read(replace(inner, factor=1.0))
        if found is None:
            return None
        if found.cap is not None or found.biases or found.is_shifted:
            raise Unfit("the cap of the scores has more inside than products of queries and keys")
        products = (replace(each, factor=each.factor * term.factor) for each in found.products)
        return Scores(tuple(products), cap=term.factor)

    def _read_sum(self, op: Arithmetic, term: Term) -> Scores | None:
        numbers = iter(range(2))
        signs = (1, -1 if isinstance(op, Subtract) else 1)
        parts, biases = list[Scores](), list[Term]()
        for sign, constant in zip(signs, op.constants, strict=True):
            operand = None if constant is not None else self._follow(term, next(numbers))
            if constant is None and operand is None:
                return None
            if operand is None:
                continue
            operand = replace(operand, factor=sign * term.factor)
            found = self._read(operand)
            parts += [] if found is None else [found]
            biases += [operand] if found is None else []
        if not parts:
            return None
        if len(parts) > 1 and any(each.cap is not None for each in parts):
            raise Unfit("the cap is not that of all scores")
        products = tuple(each for part in parts for each in part.products)
        biases += [each for part in parts for each in part.biases]
        is_shifted = op.constants != (None, None) or any(each.is_shifted for each in parts)
        return Scores(products, tuple(biases), parts[0].cap, is_shifted)

    # ------------------------------------------------------------ choices

    def _read_choice(self, choice: Term, rows: list[str]) -> tuple[tuple[Term, ...], tuple[Piece, ...]]:
        """Read a choice as masks and the pieces of a band."""
        masks, bands = list[Term](), list[tuple[Piece, ...]]()
        for factor in self._list_factors(choice, rows):
            found = self._find_pieces(factor, rows)
            bands += [] if found is None else [found]
            masks += [factor] if found is None else []
        pieces = tuple(map(_meet, product(*bands))) if bands else ()
        return (tuple(masks), pieces) if len(pieces) <= MOST_PIECES else ((choice,), ())

    def _list_factors(self, choice: Term, rows: list[str]) -> Iterator[Term]:
        """List the factors of a choice, without axes along which they only repeat."""
        node = self.graph[choice.value.node]
        if isinstance(node, OpNode) and self._find_pieces(choice, rows) is None:
            is_product = isinstance(node.op, Multiply) and node.op.constants == (None, None)
            operands = [self._follow(choice, number) for number in range(1 + is_product)]
            known = [each for each in operands if each is not None]
            if len(known) == len(operands) and (is_product or isinstance(node.op, (*VIEWS, Expand, NewAxis))):
                for each in known:
                    yield from self._list_factors(each, rows)
                return
        yield choice

    def _find_pieces(self, choice: Term, rows: list[str]) -> tuple[Piece, ...] | None:
        """Find the pieces of a choice that is a band of queries and keys, and nothing else."""
        found = self.bands.find(choice.value)
        if found is None or not found.exact:
            return None
        pieces, used = list[Piece](), {"M"}
        aligned = {LAST in axes for piece in found.pieces for axes in piece}
        if len(aligned | ({self.last} - {None})) > 1:
            return None
        for piece in found.pieces:
            bounds = dict.fromkeys(("", "M", "N"), OPEN)
            for axes, (low, high) in piece.items():
                letters = [choice.letters[axis] for axis in axes if axis != LAST]
                used |= {*letters}
                if letters[0] == "M" and len(letters) == 2:
                    low, high = (None if each is None else -each for each in (high, low))
                what = "" if len(letters) == 2 else "M" if letters == ["M"] else "N"
                bounds[what] = _whole(low), _whole(high)
            pieces.append((bounds[""], bounds["M"], bounds["N"]))
        (row, *others) = [*used - {"M"}] or [""]
        if others or (row and (row not in rows or (self.row or row) != row)) or len(pieces) > MOST_PIECES:
            return None
        self.row, self.last = self.row or row, next(iter(aligned), self.last)
        return tuple(pieces)


def _find_factor(op: Arithmetic) -> float | None:
    """Find the number by which an op multiplies a value; None if it does something else."""
    left, right = op.constants
    if isinstance(op, Divide):
        return None if right is None or right == 0 else 1 / right
    return left if right is None else right


def _whole(bound: object) -> int | None:
    return None if bound is None else int(bound)  # type: ignore[call-overload]


def _meet(pieces: tuple[Piece, ...]) -> Piece:
    """The piece that several have in common."""
    first, second, third = (_meet_bounds(bounds) for bounds in zip(*pieces, strict=True))
    return first, second, third


def _meet_bounds(bounds: tuple[Bounds, ...]) -> Bounds:
    lows, highs = ([each for each in side if each is not None] for side in zip(*bounds, strict=True))
    return max(lows, default=None), min(highs, default=None)
