"""Unary and binary elementwise functions with safe gradients.

Where a mask or a choice makes the incoming gradient zero, it stays zero even if the derivative is infinite: 0 · ∞ would
be NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from modgraph.nn.layer import Layer


def _mask_gradient(gradient: Tensor, flowing: Tensor) -> Tensor:
    """`flowing` where the incoming gradient is not zero, else zero."""
    return torch.where(gradient == 0, 0.0, flowing)


class _Unary(torch.autograd.Function):
    """The logarithm, the square root or a power of each number."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str, exponent: float = 0.0) -> Tensor:
        result: Tensor = x.log() if name == "log" else x.sqrt() if name == "sqrt" else x**exponent
        ctx.save_for_backward(result if name == "sqrt" else x)
        ctx.name, ctx.exponent = name, exponent
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (saved,) = ctx.saved_tensors
        if ctx.name == "log":
            return _mask_gradient(gradient, gradient / saved), None, None
        if ctx.name == "sqrt":
            return _mask_gradient(gradient, gradient / (2 * saved)), None, None
        return _mask_gradient(gradient, gradient * ctx.exponent * saved ** (ctx.exponent - 1)), None, None


class _Quotient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor | float, right: Tensor) -> Tensor:
        ctx.left = left if not isinstance(left, Tensor) else None
        ctx.save_for_backward(left if isinstance(left, Tensor) and ctx.needs_input_grad[1] else None, right)
        ctx.shapes = getattr(left, "shape", None), right.shape
        return left / right

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        left, right = ctx.saved_tensors
        of_left = of_right = None
        if ctx.needs_input_grad[0]:
            of_left = _mask_gradient(gradient, gradient / right).sum_to_size(ctx.shapes[0])
        if ctx.needs_input_grad[1]:
            left = ctx.left if left is None else left
            of_right = _mask_gradient(gradient, -gradient * (left / right) / right).sum_to_size(ctx.shapes[1])
        return of_left, of_right


def _learns(*values: Any) -> bool:
    """Whether a value needs a gradient; never during an export."""
    return torch.is_grad_enabled() and any(isinstance(each, Tensor) and each.requires_grad for each in values)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    result: Tensor = _Unary.apply(x, "log") if _learns(x) else x.log()  # type: ignore[no-untyped-call]
    return result


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    result: Tensor = _Unary.apply(x, "sqrt") if _learns(x) else x.sqrt()  # type: ignore[no-untyped-call]
    return result


def divide(left: Any, right: Any) -> Tensor:
    """left / right; either may be a number."""
    if isinstance(right, Tensor) and _learns(left, right):
        result: Tensor = _Quotient.apply(left, right)  # type: ignore[no-untyped-call]
        return result
    quotient: Tensor = left / right
    return quotient


def power(left: Any, right: Any) -> Tensor:
    """left ** right; either may be a number."""
    if isinstance(right, float) and right < 1 and right != 0 and _learns(left):  # its derivative at zero is infinite
        result: Tensor = _Unary.apply(left, "power", right)  # type: ignore[no-untyped-call]
        return result
    plain: Tensor = left**right
    return plain


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "log": log,
    "sqrt": sqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "abs": torch.abs,
    "sign": torch.sign,
    "round": torch.round,
    "floor": torch.floor,
    "erf": torch.erf,
}


class Elementwise(Layer):
    """An elementwise function by its name in `FUNCTIONS`."""

    name: str

    def forward(self, x: Tensor) -> Tensor:
        return FUNCTIONS[self.name](x)


class Clamp(Layer):
    """Clamps to [least, largest]; either bound may be None."""

    least: float | None
    largest: float | None

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(self.least, self.largest)
