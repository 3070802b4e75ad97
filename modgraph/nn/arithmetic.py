"""Arithmetic, comparison and `where`, of broadcast values or of a value and a number."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from modgraph.nn.elementwise import divide, power
from modgraph.nn.layer import Layer


def _make_comparison(compare: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """Make a comparison return a number: one where it holds, else zero."""

    def function(left: Any, right: Any) -> Tensor:
        like = left if isinstance(left, Tensor) else right
        return compare(left, right).to(like.dtype if like.is_floating_point() else torch.get_default_dtype())

    return function


def to_whole(number: float | None) -> float | None:
    """A whole number as an int; others as they are."""
    return number if number is None or number != int(number) else int(number)


class Arithmetic(Layer):
    """left ∘ right, of floats or of ids; either may be a constant.

    `left_lacks` and `right_lacks` list the result's axes that an operand lacks, counted from the last. The operand
    broadcasts along them within an example, never across the batch. `left_order` and `right_order` list an operand's
    axes in the order of the result, counted from the last, where that is not its own.
    """

    OPERATORS: ClassVar[dict[str, Callable[[Any, Any], Tensor]]] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": divide,
        "**": power,
        "%": operator.mod,
        "//": operator.floordiv,
        "minimum": lambda left, right: (
            torch.minimum(left, right) if isinstance(right, Tensor) else left.clamp(max=right)
        ),
        "maximum": lambda left, right: (
            torch.maximum(left, right) if isinstance(right, Tensor) else left.clamp(min=right)
        ),
        "<": _make_comparison(operator.lt),
        "<=": _make_comparison(operator.le),
        ">": _make_comparison(operator.gt),
        ">=": _make_comparison(operator.ge),
        "==": _make_comparison(operator.eq),
        "!=": _make_comparison(operator.ne),
    }

    symbol: str
    left_lacks: tuple[int, ...] = ()
    right_lacks: tuple[int, ...] = ()
    left_order: tuple[int, ...] = ()
    right_order: tuple[int, ...] = ()
    left: float | None = None
    right: float | None = None
    ids: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        lacks = self.left_lacks or self.right_lacks or self.left_order or self.right_order
        self.is_operator = (
            not lacks and self.left is None and self.right is None
        )  # nothing broadcasts within an example
        if self.ids:  # torch would compare large ids with a float in 32 bits
            self.left, self.right = map(to_whole, (self.left, self.right))

    def pair(self, values: Iterable[Any]) -> tuple[Any, Any]:
        """The left and the right side: operands, or a constant in the place of one."""
        remaining = iter(values)
        left = next(remaining) if self.left is None else self.left
        return left, next(remaining) if self.right is None else self.right

    def forward(self, *values: Tensor) -> Tensor:
        if self.is_operator:
            return self.OPERATORS[self.symbol](*values)
        left, right = self.pair(values)
        left = broadcast(left, self.left_lacks, self.left_order)
        return self.OPERATORS[self.symbol](left, broadcast(right, self.right_lacks, self.right_order))


class Where(Layer):
    """The second operand where the first is not zero, else the third; either may be a number.

    `lacks` lists, for each operand, the result's axes that it lacks, counted from the last; `orders` lists its axes in
    the order of the result, where that is not its own. No gradient flows to the other side.
    """

    lacks: tuple[tuple[int, ...], ...]
    orders: tuple[tuple[int, ...], ...] = ((), (), ())
    then: float | None = None
    otherwise: float | None = None
    ids: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ids:
            self.then, self.otherwise = map(to_whole, (self.then, self.otherwise))

    def forward(self, *values: Tensor) -> Tensor:
        condition, *rest = map(broadcast, values, self.lacks, self.orders)
        remaining = iter(rest)
        then, otherwise = (next(remaining) if each is None else each for each in (self.then, self.otherwise))
        if not rest:  # two Python numbers would give torch's default dtype
            then = torch.full_like(condition, then)
        return torch.where(condition != 0, then, otherwise)


def broadcast(value: Any, lacks: tuple[int, ...], order: tuple[int, ...]) -> Any:
    """Permute the last axes to an order, and insert axes of size 1, counted from the last; scalars and numbers stay as
    they are."""
    if not isinstance(value, Tensor) or value.dim() == 0:
        return value
    if order:
        value = value.movedim(order, tuple(range(-len(order), 0)))
    for axis in reversed(lacks):
        value = value.unsqueeze(axis)
    return value
