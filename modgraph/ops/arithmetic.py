"""Arithmetic between values, and between a value and a constant."""

from __future__ import annotations

from modgraph.declare import Signature, TorchModule, setting
from modgraph.ops.alignment import Pairwise
from modgraph.ops.op import Op
from modgraph.ops.zeros import Bound, Bounds
from modgraph.tape import Tape, Value

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

    def of_two(self, tape: Tape, count: float, left: Value, right: Value) -> Value:
        return tape.times(count, left, right)


class Divide(Arithmetic):
    """Quotient of two values, element by element."""

    name, symbol = "divide", "/"
    synonyms = ("div", "quotient")
    example = "input x: float[5] y = 1 / x output y"
    module = ARITHMETIC_MODULE

    def with_constant(self, tape: Tape, count: float, x: Value) -> Value:
        if self.left is None:
            return tape.function(x, "nothing")
        return tape.function(tape.function(x, "result"), "nothing")

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if self.left is None else ()

    def of_two(self, tape: Tape, count: float, left: Value, right: Value) -> Value:
        return tape.quotient(count, left, right)


class Power(Arithmetic):
    """One value to the power of another, element by element."""

    name, symbol = "power", "**"
    synonyms = ("pow",)
    example = "input x: float[5, 6] y = x ** 2 output y"
    module = ARITHMETIC_MODULE

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if self.right is not None and self.right > 0 else ()

    def with_constant(self, tape: Tape, count: float, x: Value) -> Value:
        return tape.function(x, "operand" if self.left is None else "result")

    def of_two(self, tape: Tape, count: float, left: Value, right: Value) -> Value:
        return tape.make(count, left, right, keeps=[left, right], keeps_result=True)


ARITHMETIC = {op.symbol: op for op in (Add, Subtract, Multiply, Divide, Power)}
