"""Arithmetic, comparison and choice: of values that stand over each other, or of a value and a number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from modgraph.nn.elementwise import divide, power
from modgraph.nn.layer import Layer


def _compared(compare: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """A comparison as a number, one where it holds."""

    def function(left: Any, right: Any) -> Tensor:
        return compare(left, right).to((left if isinstance(left, Tensor) else right).dtype)

    return function


class Arithmetic(Layer):
    """left ∘ right, one of them perhaps a constant.

    `left_lacks` and `right_lacks` are the axes of the result that a value does not have, counted from the last: within
    an example it is repeated along them, never across the batch.
    """

    OPERATORS: ClassVar[dict[str, Callable[[Any, Any], Tensor]]] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": divide,
        "**": power,
        "minimum": lambda left, right: (
            torch.minimum(left, right) if isinstance(right, Tensor) else left.clamp(max=right)
        ),
        "maximum": lambda left, right: (
            torch.maximum(left, right) if isinstance(right, Tensor) else left.clamp(min=right)
        ),
        "<": _compared(operator.lt),
        "<=": _compared(operator.le),
        ">": _compared(operator.gt),
        ">=": _compared(operator.ge),
        "==": _compared(operator.eq),
        "!=": _compared(operator.ne),
    }

    symbol: str
    left_lacks: tuple[int, ...] = ()
    right_lacks: tuple[int, ...] = ()
    left: float | None = None
    right: float | None = None

    def forward(self, *values: Tensor) -> Tensor:
        remaining = iter(values)
        left = next(remaining) if self.left is None else self.left
        right = next(remaining) if self.right is None else self.right
        return self.OPERATORS[self.symbol](_widened(left, self.left_lacks), _widened(right, self.right_lacks))


class Where(Layer):
    """The second value where the first, a condition, is not zero, the third elsewhere; either may be a number.

    `lacks` has for each value the axes of the result that it does not have, counted from the last. No gradient flows to
    the side not taken.
    """

    lacks: tuple[tuple[int, ...], ...]
    chosen: float | None = None
    otherwise: float | None = None

    def forward(self, *values: Tensor) -> Tensor:
        condition, *rest = map(_widened, values, self.lacks)
        remaining = iter(rest)
        chosen, other = (next(remaining) if each is None else each for each in (self.chosen, self.otherwise))
        if not rest:  # two Python numbers would give torch's default dtype
            chosen = torch.full_like(condition, chosen)
        return torch.where(condition != 0, chosen, other)


def _widened(value: Any, lacks: tuple[int, ...]) -> Any:
    """A value with the axes that it lacks, counted from the last; batch statistics and constants as they are."""
    if not isinstance(value, Tensor) or value.dim() == 0:
        return value
    for axis in reversed(lacks):
        value = value.unsqueeze(axis)
    return value
