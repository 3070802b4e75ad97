"""Routes on the tape of a training step: the forms that compute them, as `modgraph.nn` does.

S senders, M modules, E edges (a sender and a module chosen for it), D width of a message, V numbers of a result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from modgraph.declare import Use
from modgraph.tape import INDEX, Value


class TapedPool(Protocol):
    """A pool's modules on the tape."""

    @property
    def size(self) -> int: ...

    @property
    def result(self) -> float:
        """The numbers of one result."""

    def slices(self, x: Value, edges: float) -> Value:
        """Each module on a slice of so many edges' messages; the results of all one after another."""

    def rows(self, x: Value, rows: float) -> Value:
        """Module j on row j of so many rows of messages, one for each module."""

    def taken(self, x: Value, edges: float) -> Value:
        """On each edge the module whose weights are taken by index."""

    def all(self, x: Value, senders: float) -> Value:
        """Every module on so many senders' messages."""

    def kept(self, what: tuple[Any, ...], make: Callable[[], Value]) -> Value:
        """What routes have in common, made by the first of them."""


def senders(use: Use) -> float:
    """S: all senders of all examples."""
    return use.lead * float(use.axis("N"))


def grouped(use: Use, pool: TapedPool, tokens: Value, gates: Value, S: float, E: float) -> Value:
    """Edges sorted by module, each module once on its slice, results added back."""
    tape, D = use.tape, tokens.count / S
    indices = tape.make(2 * E, width=INDEX)  # those of tokens and of modules are one tensor
    sent = tape.make(E * D, tokens, keeps=[indices], width=tokens.width)
    values = pool.slices(sent, E)
    weight = tape.make(E, gates, keeps_more=E * INDEX)
    weighted = tape.times(values.count, values, weight)
    return tape.make(S * pool.result, weighted, keeps=[weighted, indices])  # torch keeps what is added, for its shape


def gathered(use: Use, pool: TapedPool, tokens: Value, gates: Value, S: float, k: int) -> Value:
    """The weights of the chosen modules taken by index, once for each of k choices."""
    tape, total = use.tape, None
    tokens = tape.in_order(tokens)
    for _ in range(k):
        weight = tape.times(S, tape.make(S, gates, keeps_more=S * INDEX), tape.drawn(S))
        values = tape.make(S * pool.result, pool.taken(tokens, S), keeps_more=S)
        part = tape.times(values.count, values, weight)
        total = part if total is None else tape.add(part.count, total, part)
    assert total is not None
    return total


def masked(use: Use, pool: TapedPool, tokens: Value, gates: Value, S: float) -> Value:
    """Every module on every sender, weighted by zero where it was not chosen."""
    tape = use.tape
    values = tape.cleared(pool.all(tokens, S), S * pool.size)
    return tape.make(S * pool.result, tape.times(values.count, values, gates))


def chosen(
    form: str, use: Use, pool: TapedPool, tokens: Value, gates: Value, S: float, reached: float, k: int
) -> Value:
    """The value of a route along choices, in one of its forms; each sender reaches so many modules."""
    if form == "gathered":
        return gathered(use, pool, tokens, gates, S, k)
    if form == "masked":
        return masked(use, pool, tokens, gates, S)
    return grouped(use, pool, tokens, gates, S, S * reached)
