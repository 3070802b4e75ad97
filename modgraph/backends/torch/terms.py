"""Values of terms at all steps, aligned with the axes of a state. B is the batch axis, T that of steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

from modgraph.ir import Factor, Labels, Result, Term

Values = dict[Result, Tensor]
Number = Tensor | float
Factors = Iterable[Factor]


def align(x: Tensor, labels: Labels, order: Sequence[int]) -> Tensor:
    """Permute x [B, T, axes by label] to [B, T, axes in order]; those that it lacks have length 1."""
    for place in reversed(range(len(labels))):
        if labels[place] is None:
            x = x.squeeze(2 + place)
    known = [label for label in labels if label is not None]
    x = x.permute(0, 1, *(2 + known.index(label) for label in order if label in known))
    for place, label in enumerate(order):
        if label not in known:
            x = x.unsqueeze(2 + place)
    return x


def multiply(values: Values, factors: Factors, order: Sequence[int]) -> Number:
    """The product of factors [B, T, axes in order]; 1 if there are none."""
    found: Number = 1.0
    for each in factors:
        x = align(values[each.value], each.labels, order)
        found = found / x if each.inverse else x if isinstance(found, float) and found == 1 else found * x
    return found


def scale(x: Number, number: float) -> Number:
    return x if number == 1 else -x if number == -1 else x * number


def evaluate(values: Values, terms: Iterable[Term], order: Sequence[int]) -> Number:
    """The sum of terms, without their states: [B, T, axes in order]; 0 if there are none."""
    found = [scale(multiply(values, each.factors, order), each.number) for each in terms]
    return sum(found[1:], found[0]) if found else 0.0
