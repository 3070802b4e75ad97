"""What a forward pass leaves behind for the backward pass, written down without computing anything.

An op says on a `Tape` what it makes of what: how many numbers, of which values, and what autograd keeps for the way
back. Values that are views of one another share a `Storage`, which counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

FLOAT, INDEX, FLAG = 4, 8, 1  # bytes of a number, of an index, of a truth value


@dataclass(eq=False)
class Storage:
    """Memory that one or several values lie in. A `lasting` one, a weight's or the batch's, is there all along."""

    size: float
    lasting: bool = False


@dataclass(frozen=True, eq=False)
class Value:
    """So many numbers, of so many bytes each; one that `learns` has a gradient.

    A `strided` one lies scattered in its storage, as a step of a batch of sequences does: products lay it out anew.
    """

    count: float
    storage: Storage
    learns: bool = False
    width: int = FLOAT
    is_weight: bool = False
    strided: bool = False

    @property
    def size(self) -> float:
        """The bytes of its gradient, and of its own, if it is not repeated in place."""
        return self.count * self.width


@dataclass(frozen=True, eq=False)
class Entry:
    """One operation, all of whose results share a storage: `keeps` is what autograd keeps of it.

    Where a gradient `passes`, that of a source is that of the result itself, and no new tensor. `works` are bytes that
    the way back takes, and gives back at once.
    """

    results: tuple[Value, ...]
    sources: tuple[Value, ...]
    keeps: tuple[Storage, ...] = ()
    passes: bool = False
    works: float = 0


@dataclass
class Tape:
    """The operations of a forward pass in order. `half` says that products are made in two bytes, as autocast does."""

    width: int = FLOAT
    half: bool = False
    entries: list[Entry] = field(default_factory=list)
    held: list[Storage] = field(default_factory=list)
    _scale: float = 1
    _halved: dict[Storage, Value] = field(default_factory=dict)

    # ------------------------------------------------------------ what is there before

    def weight(self, count: float, learns: bool) -> Value:
        return Value(count, Storage(count * self.width, lasting=True), learns, self.width, is_weight=True)

    def given(self, count: float, width: int | None = None) -> Value:
        """A part of the batch."""
        width = width or self.width
        return Value(count, Storage(count * width, lasting=True), width=width)

    def drawn(self, count: float) -> Value:
        """Numbers drawn at random, or made of what does not learn."""
        return self.make(count)

    def hold(self, values: Iterable[Value]) -> None:
        """Values that are not given up before the forward pass ends."""
        self.held.extend(value.storage for value in values)

    @contextmanager
    def nothing_held(self) -> Iterator[None]:
        """Within it, what is to be held is given up as soon as nothing reads it."""
        before, self.held = self.held, []
        try:
            yield
        finally:
            self.held = before

    @contextmanager
    def repeated(self, times: float) -> Iterator[None]:
        """Within it, each operation stands for so many that are alike and whose results are all kept."""
        before, self._scale = self._scale, self._scale * times
        try:
            yield
        finally:
            self._scale = before

    # ------------------------------------------------------------ operations

    def make(
        self,
        count: float,
        *sources: Value,
        keeps: Iterable[Value] = (),
        keeps_result: bool = False,
        keeps_more: float = 0,
        width: int | None = None,
        learns: bool = True,
        passes: bool = False,
        works: float = 0,
    ) -> Value:
        """A new value of so many numbers; autograd keeps some values, the result, so many bytes besides."""
        width = width or max((source.width for source in sources), default=self.width)
        learns = learns and any(source.learns for source in sources)
        result = Value(count, Storage(count * width * self._scale), learns, width)
        kept = [value.storage for value in keeps] + [result.storage] * keeps_result
        if keeps_more:
            kept.append(Storage(keeps_more * self._scale))
        self.entries.append(Entry((result,), sources, tuple(kept) if learns else (), passes, works))
        return result

    def view(self, x: Value, count: float | None = None, passes: bool = True) -> Value:
        """The same memory in another shape; of a part of it, the gradient is a new tensor."""
        result = replace(x, count=x.count if count is None else count, is_weight=False)
        self.entries.append(Entry((result,), (x,), passes=passes))
        return result

    def parts(self, x: Value, *counts: float, strided: bool = False) -> tuple[Value, ...]:
        """A value cut up where it lies; the gradients of all parts are put together at once."""
        strided = strided or x.strided
        results = tuple(replace(x, count=count, is_weight=False, strided=strided) for count in counts)
        self.entries.append(Entry(results, (x,)))
        return results

    def function(self, x: Value, keeps: str = "operand", more: float = 0) -> Value:
        """A function of each number, which keeps its operand, its result, or nothing."""
        kept = [x] if keeps == "operand" else []
        return self.make(x.count, x, keeps=kept, keeps_result=keeps == "result", keeps_more=more)

    def copy(self, *sources: Value, count: float | None = None) -> Value:
        """Values side by side, or one laid out anew."""
        return self.make(sum(each.count for each in sources) if count is None else count, *sources)

    def in_order(self, x: Value) -> Value:
        """A value as it is, or laid out anew where it is strided."""
        return self.copy(x) if x.strided else x

    def add(self, count: float, *sources: Value) -> Value:
        """A sum, whose gradient is that of each."""
        return self.make(count, *sources, passes=True)

    def times(self, count: float, left: Value, right: Value) -> Value:
        """A product, number by number: each is kept for the gradient of the other."""
        return self.make(count, left, right, keeps=_factors(left, right))

    def quotient(self, count: float, left: Value, right: Value) -> Value:
        """A quotient, number by number; the gradient of the divisor takes some tensors of its size on the way."""
        works = 3 * count * left.width if right.learns else 0
        return self.make(count, left, right, keeps=[left, right] if right.learns else [right], works=works)

    def unit(self, x: Value, vectors: float) -> Value:
        """So many vectors, each divided by its length."""
        length = self.make(vectors, x, keeps=[x], keeps_result=True)
        return self.quotient(x.count, x, self.make(vectors, length, keeps_more=vectors * self.width))

    def product(self, count: float, left: Value, right: Value, *added: Value) -> Value:
        """A product of matrices, or a convolution; what is added is not kept."""
        left, right = self._in_half(self.in_order(left)), self._in_half(right)
        added = tuple(map(self._in_half, added))
        return self.make(count, left, right, *added, keeps=_factors(left, right))

    def cleared(self, x: Value, mask: float) -> Value:
        """x with zeros where a mask of so many truth values says so; it is kept."""
        return self.make(x.count, x, keeps_more=mask * FLAG) if mask else x

    def _in_half(self, x: Value) -> Value:
        """What a product takes under autocast; weights are cast once."""
        if not self.half or x.width == 2:
            return x
        if x.is_weight and x.storage in self._halved:
            return self._halved[x.storage]
        cast = self.make(x.count, x, width=2)
        if x.is_weight:
            self._halved[x.storage] = cast
            self.hold([cast])
        return cast


def _factors(left: Value, right: Value) -> list[Value]:
    return [one for one, other in ((left, right), (right, left)) if other.learns]
