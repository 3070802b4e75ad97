"""Recognises attention that a graph computes as scores, softmax and sum, by data flow alone.

Each axis of the scores has a letter: M is that of keys, over which softmax and sum run. A value that broadcasts to the
scores has the letters of its axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from string import ascii_lowercase

from modgraph.declare.indexing import Use
from modgraph.ir import Graph, Node, OpNode, Result
from modgraph.ir.analysis.bands import BandFinder
from modgraph.ops.along_axis import Softmax
from modgraph.ops.arithmetic import Add, Arithmetic, Divide, Multiply, Subtract
from modgraph.ops.axes import Expand, NewAxis, Transpose
from modgraph.ops.choice import MaskedSoftmax
from modgraph.ops.dot_product import OPEN, Bounds, Piece
from modgraph.ops.elementwise import Tanh
from modgraph.ops.linear import Contract
from modgraph.ops.shape import Rename

MOST_PIECES = 4


@dataclass(frozen=True)
class Term:
    """A value, the letters of its axes, and a factor."""

    value: Result
    letters: str
    factor: float = 1.0


@dataclass(frozen=True)
class Product:
    """Queries and keys, which are contracted; a factor multiplies the result."""

    queries: Term
    keys: Term
    factor: float


@dataclass(frozen=True)
class Scores:
    """cap · tanh(Σ products / cap) + Σ biases, up to a number that softmax ignores."""

    products: tuple[Product, ...]
    biases: tuple[Term, ...] = ()
    cap: float | None = None
    is_shifted: bool = False


@dataclass(frozen=True)
class Attention:
    """Attention that ends at the sum `node`: its operands, and the letters of its result.

    Keys are visible where all masks are not zero, and in one of the pieces. `inside` are nodes that it replaces.
    """

    node: str
    scores: Scores
    values: Term
    result: str
    masks: tuple[Term, ...]
    sink: Term | None
    pieces: tuple[Piece, ...]
    inside: tuple[str, ...]


class Unfit(Exception):
    """Raised for attention that cannot be one op, with the reason."""


class Recogniser:
    """Recognises attention in one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.bands = BandFinder(graph)
        self.inside: list[str] = []

    def recognise(self, node: OpNode) -> Attention | None:
        """Recognise the attention that ends at a contraction, if any. Raises `Unfit`."""
        if not isinstance(node.op, Contract):
            return None
        terms, result = self.graph.signature(node).axes["equation"].replace("...", "").split("->")
        sources, letters = [*self.graph.inputs(node.name).values()], terms.split(",")
        (over,) = {*letters[0]} & {*letters[1]} - {*result}
        letters, result = [each.replace(over, "M") for each in letters], result  # contract names axes by small letters
        for at in (0, 1):
            self.inside = []
            softmax = self._find_softmax(Term(sources[at], letters[at]))
            if softmax is not None:
                return self._read_attention(node, softmax, Term(sources[1 - at], letters[1 - at]), result)
        return None

    # ------------------------------------------------------------ weights

    def _find_softmax(self, gates: Term) -> tuple[OpNode, str] | None:
        """Find the softmax over keys behind weights, and the letters of its axes."""
        value, between = gates, list[str]()
        while isinstance(node := self.graph[value.value.node], OpNode):
            if isinstance(node.op, Softmax | MaskedSoftmax):
                if value.letters[self.graph.signature(node).axes["position"]] != "M":
                    return None
                self.inside.append(node.name)
                if between and self._read(replace(value, value=self._first(node))) is not None:
                    raise Unfit(f'"{between[0]}" changes the weights between softmax and sum')
                return None if between else (node, value.letters)
            found = self._follow(node, value)
            if found is None:
                return None
            between += [] if isinstance(node.op, Transpose | Rename) else [node.op.name]
            self.inside.append(node.name)
            value = found
        return None

    def _read_attention(self, node: OpNode, softmax: tuple[OpNode, str], values: Term, result: str) -> Attention | None:
        gates, letters = softmax
        x, *others = self.graph.inputs(gates.name).values()
        scores = self._read(Term(x, letters))
        if scores is None:
            return None
        slots = dict(zip(self.graph.inputs(gates.name), (x, *others), strict=True))
        sink = self._follow_operand(gates, letters, "sink") if "sink" in slots else None
        if scores.is_shifted and sink is not None:
            raise Unfit("a number is added to scores that share a softmax with a sink")
        masks, pieces = self._read_choice(Term(slots["choice"], letters)) if "choice" in slots else ((), ())
        return Attention(node.name, scores, values, result, masks, sink, pieces, tuple(self.inside))

    # ------------------------------------------------------------ scores

    def _read(self, term: Term) -> Scores | None:
        """Read scores, by the factor of the term; None if no product of queries and keys is in them."""
        node = self.graph[term.value.node]
        if not isinstance(node, OpNode) or term.value.index:
            return None
        match node.op:
            case Contract():
                return self._read_product(node, term)
            case Tanh():
                return self._read_cap(node, term)
            case Add() | Subtract():
                return self._read_sum(node, term)
            case Multiply() | Divide(left=None) if node.op.constants != (None, None):
                (number,) = (each for each in node.op.constants if each is not None)
                factor = 1 / number if isinstance(node.op, Divide) and number else number
                found = self._follow(node, term)
                return None if found is None else self._keep(node, replace(found, factor=term.factor * factor))
            case Transpose() | Rename():
                found = self._follow(node, term)
                return None if found is None else self._keep(node, found)
            case _:
                for number in range(len(self.graph.inputs(node.name))):
                    found = self._follow(node, term, number)
                    if found is not None and len(found.letters) == len(term.letters) and self._read(found) is not None:
                        raise Unfit(f'"{node.op.name}" changes the scores')
                return None

    def _keep(self, node: Node, term: Term) -> Scores | None:
        """Read on, with a node inside if there are scores behind it."""
        found = self._read(term)
        self.inside += [] if found is None else [node.name]
        return found

    def _read_product(self, node: OpNode, term: Term) -> Scores | None:
        terms, result = self.graph.signature(node).axes["equation"].replace("...", "").split("->")
        (over,) = {*terms} - {*result, ","}
        to = {**dict(zip(result, term.letters, strict=True)), over: "w"}
        named = [
            Term(value, "".join(to[each] if each != over else "@" for each in letters))
            for value, letters in zip(self.graph.inputs(node.name).values(), terms.split(","), strict=True)
        ]
        keys = [each for each in named if "M" in each.letters]
        if len(keys) != 1:
            return None
        (queries,) = (each for each in named if each is not keys[0])
        self.inside.append(node.name)
        return Scores((Product(queries, keys[0], term.factor),))

    def _read_cap(self, node: OpNode, term: Term) -> Scores | None:
        found = self._follow(node, replace(term, factor=1.0))
        scores = None if found is None else self._keep(node, found)
        if scores is None:
            return None
        if scores.cap is not None or scores.biases or scores.is_shifted:
            raise Unfit("a bias stands inside the cap of the scores")
        products = tuple(replace(each, factor=each.factor * term.factor) for each in scores.products)
        return Scores(products, cap=term.factor)

    def _read_sum(self, node: OpNode, term: Term) -> Scores | None:
        op = node.op
        assert isinstance(op, Arithmetic)
        signs = (1, -1 if isinstance(op, Subtract) else 1)
        remaining = iter(range(len(self.graph.inputs(node.name))))
        products, biases, caps = list[Product](), list[Term](), list[float | None]()
        shifted = False
        for sign, number in zip(signs, op.constants, strict=True):
            operand = None if number is not None else self._follow(node, term, next(remaining))
            if operand is None:
                if number is None:
                    return None
                shifted = True
                continue
            signed = replace(operand, factor=sign * term.factor)
            found = self._read(signed)
            if found is None:
                biases.append(signed)
                continue
            products += found.products
            biases += found.biases
            caps.append(found.cap)
            shifted = shifted or found.is_shifted
        if not products:
            return None
        self.inside.append(node.name)
        if len(caps) > 1 and any(each is not None for each in caps):
            raise Unfit("only some of the scores are capped")
        return Scores(tuple(products), tuple(biases), caps[0], shifted)

    # ------------------------------------------------------------ choices

    def _read_choice(self, choice: Term) -> tuple[tuple[Term, ...], tuple[Piece, ...]]:
        """Read a choice as masks and the pieces of a band."""
        masks, pieces = list[Term](), list[tuple[Piece, ...]]()
        for factor in self._list_factors(choice):
            found = self._find_pieces(factor)
            if isinstance(found, tuple):
                pieces.append(found)
            else:
                masks.append(factor)
        joined = tuple(_meet(each) for each in product(*pieces)) if pieces else ()
        if len(joined) > MOST_PIECES:
            return (choice,), ()
        return tuple(masks), joined

    def _list_factors(self, choice: Term) -> Iterator[Term]:
        """List the factors of a choice, each without axes along which it only repeats."""
        node = self.graph[choice.value.node]
        of_op = isinstance(node, OpNode) and not choice.value.index and self._find_pieces(choice) is None
        count = len(self.graph.inputs(node.name))
        if of_op and isinstance(node, OpNode) and isinstance(node.op, Multiply | Expand | NewAxis | Transpose | Rename):
            operands = range(count if isinstance(node.op, Multiply) and None not in node.op.constants[:0] else 1)
            found = [self._follow(node, choice, number) for number in operands]
            if all(found) and (not isinstance(node.op, Multiply) or node.op.constants == (None, None)):
                for each in found:
                    if each is not None:
                        yield from self._list_factors(each)
                return
        yield choice

    def _find_pieces(self, choice: Term) -> tuple[Piece, ...] | None:
        """The pieces of a choice that is a band of queries and keys and nothing else."""
        found = self.bands.find(choice.value)
        if found is None or not found.exact:
            return None
        pieces = []
        for piece in found.pieces:
            limits: dict[str, Bounds] = {}
            for axes, (low, high) in piece.items():
                letters = "".join(choice.letters[axis] for axis in axes)
                ...
        return tuple(pieces)
