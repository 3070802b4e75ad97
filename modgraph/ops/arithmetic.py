"""Arithmetic between values, and between a value and a constant."""

from __future__ import annotations

from modgraph.declare import Signature, TorchModule, setting
from modgraph.ops.alignment import Pairwise
from modgraph.ops.op import Op
from modgraph.ops.zeros import Bound, Bounds

ARITHMETIC_MODULE = TorchModule(
    "modgraph.nn.Arithmetic", "symbol", "left_lacks", "right_lacks", left="left", right="right"
)


class Arithmetic(Pairwise):
    """Base of + − × ÷ and power: two values, or a value and a constant."""

    broadcasts = True

    left: float | None = setting(None, doc="a constant instead of the left operand")
    right: float | None = setting(None, doc="a constant instead of the right operand")

    @property
    def constants(self) -> tuple[float | None, float | None]:
        return self.left, self.right


class Add(Arithmetic):
    """Sum of two values."""

    name, symbol = "add", "+"
    synonyms = ("plus",)
    example = "input x: float[5, 6] y = x + x output y"
    module = ARITHMETIC_MODULE
    unchanged_by_zero = ("left", "right")

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if 0 in self.constants else ()

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        return self.propagate_all(Add(left=None, right=None), signature, known)


class Subtract(Arithmetic):
    """Difference of two values."""

    name, symbol = "subtract", "-"
    synonyms = ("sub", "minus")
    example = "input x: float[5, 6] y = x - 1 output y"
    module = ARITHMETIC_MODULE
    unchanged_by_zero = ("right",)

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if 0 in self.constants else ()

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        return self.propagate_all(Add(left=None, right=None), signature, known)


class Multiply(Arithmetic):
    """Product of two values, element by element."""

    name, symbol = "multiply", "*"
    synonyms = ("mul", "times")
    example = "input x: float[5, 6] y = 2 * x output y"
    module = ARITHMETIC_MODULE

    def zero_with(self) -> tuple[int, ...]:
        return (0, 1)


class Divide(Arithmetic):
    """Quotient of two values, element by element."""

    name, symbol = "divide", "/"
    synonyms = ("div", "quotient")
    example = "input x: float[5] y = 1 / x output y"
    module = ARITHMETIC_MODULE

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if self.left is None else ()


class Power(Arithmetic):
    """One value to the power of another, element by element."""

    name, symbol = "power", "**"
    synonyms = ("pow",)
    example = "input x: float[5, 6] y = x ** 2 output y"
    module = ARITHMETIC_MODULE

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if self.right is not None and self.right > 0 else ()


ARITHMETIC = {op.symbol: op for op in (Add, Subtract, Multiply, Divide, Power)}
