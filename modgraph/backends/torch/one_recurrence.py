"""One linear recurrence at all steps. B is the batch axis, T that of steps."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from modgraph.backends.torch.terms import Factors, Values, align, evaluate, multiply, scale
from modgraph.ir import Factor, Matrix, Recurrence, Result, Term
from modgraph.nn import run_matrix_recurrence, run_recurrence, shift_states
from modgraph.nn.matrix_recurrence import sum_all


def count_numbers(each: Recurrence, shape: Sequence[int]) -> int:
    """The numbers that a recurrence holds at a step, about."""
    if each.matrix is None or each.keeps:
        return prod(shape)
    rows, key = prod(shape[row] for row in each.matrix.rows), shape[each.matrix.key]
    return prod(shape) // (rows * key) * (rows + key)


def run_one_recurrence(
    each: Recurrence, values: Values, initial: Tensor, mask: Tensor | None, reads: Set[Result]
) -> Tensor:
    """Add the values that a recurrence gives; returns the state [B, ...] after the last step.

    `initial` [B, ...] is the state before the first one. Outside of the mask [B, T] the state stays.
    """
    lead = next(iter(values.values())).shape[:2]
    read, last = None, initial
    if each.matrix is not None:
        read, last = MatrixRun(each, each.matrix, values, initial, mask, lead).run()
    if not each.keeps:
        return last
    order = range(initial.dim() - 1)
    gate, offset = evaluate(values, each.gates, order), evaluate(values, each.offsets, order)
    if read is not None:  # the products with the state are known now: they are offsets
        for term in each.products:
            offset = offset + scale(read * multiply(values, term.factors, order), term.number)
    offset = offset if isinstance(offset, Tensor) else initial.new_full((1,) * (1 + initial.dim()), offset)
    offset = offset.expand(*lead, *initial.shape[1:])
    if mask is not None:
        here = mask.reshape(*mask.shape, *[1] * len(order))
        offset = torch.where(here, offset, 0)
        if isinstance(gate, Tensor) or gate != 1:
            gate = gate if isinstance(gate, Tensor) else offset.new_tensor(gate)
            gate = torch.where(here, gate, 1.0)
    states, last = run_recurrence(gate, offset, initial)
    values[each.following] = states
    if Result(each.state) in reads:
        values[Result(each.state)] = shift_states(states, initial)
    return last


@dataclass(frozen=True, eq=False)
class MatrixRun:
    """Runs the recurrence of a matrix. Its operands are vectors [B, T, …, width] with one axis for all rows."""

    each: Recurrence
    matrix: Matrix
    values: Values
    initial: Tensor
    mask: Tensor | None
    lead: Sequence[int]

    @property
    def outer(self) -> list[int]:
        """The places of the axes of independent matrices."""
        inside = (self.matrix.key, *self.matrix.rows)
        return [place for place in range(self.initial.dim() - 1) if place not in inside]

    def run(self) -> tuple[Tensor | None, Tensor]:
        """Add what is read of the states. Returns their products at all steps, aligned with the state, and the last
        state."""
        product, outer = self.operands()
        key, readouts = self.matrix.key, self.matrix.readouts
        queries = [(self.expand([key], [readout.query]), readout.before) for readout in readouts]
        order = [*self.outer, *self.matrix.rows, key]
        shape = [self.initial.shape[1 + place] for place in order]
        permuted = self.initial.permute(0, *(1 + place for place in order)).flatten(1 + len(self.outer), -2)
        permuted = permuted if self.matrix.rows else permuted.unsqueeze(-2)
        keeps = self.each.keeps
        read, last, products = run_matrix_recurrence(self.gate(), product, outer, queries, permuted, keeps)
        for readout, found in zip(readouts, read, strict=True):
            self.values[readout.value] = self.place(found, readout.labels)
        last = last.reshape(last.shape[0], *shape).permute(0, *(1 + order.index(place) for place in range(len(order))))
        return None if products is None else self.place(products, [*range(len(order))]), last

    def operands(self) -> tuple[tuple[Tensor, Tensor] | None, list[tuple[Tensor, Tensor]]]:
        """The product and the outer products; terms with one vector of columns are one product."""
        key, rows, products = self.matrix.key, self.matrix.rows, self.each.products
        grouped: dict[Sequence[Factor], list[Term]] = {}
        for term in self.each.offsets:
            grouped.setdefault(self.split(term)[1], []).append(term)

        def add(terms: Sequence[Term], places: Sequence[int]) -> Tensor:
            found = [self.expand(places, self.split(term)[0], term.number, masks=True) for term in terms]
            return sum_all(found or [self.expand(places, (), 0.0)])

        if not products:
            outer = [(add(terms, rows), self.expand([key], column)) for column, terms in grouped.items()]
            return None, outer or [(add([], rows), self.expand([key], ()))]
        columns = {self.split(term)[1] for term in products}
        if len(columns) == 1:
            (column,) = columns
            first, factor = self.expand([key], column), add(products, [])
            known = grouped.pop(column, [])
        else:
            first = sum_all([self.expand([key], term.factors, term.number) for term in products])
            known, factor = [], self.expand([], (), masks=True)
        outer = [(add(terms, rows), self.expand([key], column)) for column, terms in grouped.items()]
        return (self.expand([key], products[0].inner), factor), [(add(known, rows), first), *outer]

    def split(self, term: Term) -> tuple[tuple[Factor, ...], tuple[Factor, ...]]:
        """The factors of a term without the axis of columns, and those with it."""
        is_column = [self.matrix.key in factor.axes for factor in term.factors]
        pairs = [*zip(term.factors, is_column, strict=True)]
        return tuple(each for each, own in pairs if not own), tuple(each for each, own in pairs if own)

    def gate(self) -> Tensor:
        """The gates [B, T, …, 1 or K]."""
        found = evaluate(self.values, self.each.gates, [*self.outer, self.matrix.key])
        if not isinstance(found, Tensor):
            found = self.initial.new_full((1,) * (3 + len(self.outer)), found)
        found = found.expand(*self.lead, *found.shape[2:])
        if self.mask is None:
            return found
        return torch.where(self.mask.reshape(*self.mask.shape, *[1] * (found.dim() - 2)), found, 1.0)

    def expand(self, places: Sequence[int], factors: Factors, number: float = 1.0, masks: bool = False) -> Tensor:
        """The product of factors as [B, T, …, width]; with `masks` zero outside of the mask."""
        found = scale(multiply(self.values, factors, [*self.outer, *places]), number)
        if not isinstance(found, Tensor):
            found = self.initial.new_full((1,) * (2 + len(self.outer) + len(places)), found)
        inner = [self.initial.shape[1 + place] for place in places]
        found = found.expand(*self.lead, *found.shape[2 : 2 + len(self.outer)], *inner)
        found = found.flatten(2 + len(self.outer)) if places else found.unsqueeze(-1)
        if masks and self.mask is not None:
            found = torch.where(self.mask.reshape(*self.mask.shape, *[1] * (found.dim() - 2)), found, 0)
        return found

    def place(self, x: Tensor, labels: Sequence[int]) -> Tensor:
        """Give the axes of a vector for each row, [B, T, …, V], the order of labels; one that it lacks has length 1."""
        known = [*self.outer, *self.matrix.rows]
        shape = [self.initial.shape[1 + place] for place in known]
        return align(x.reshape(*x.shape[:2], *shape), tuple(known), labels)
