"""Arithmetic between values, and between a value and a constant."""

from __future__ import annotations

from typing import Any, ClassVar

from modgraph.declare import Signature, TorchModule, Use, setting
from modgraph.declare.words import shown_count
from modgraph.ops.op import Op
from modgraph.tape import Tape, Value
from modgraph.types import Axes, Misfit, Shape, TensorType, broadcast, laid, once_each, shown

ARITHMETIC_MODULE = TorchModule(
    "modgraph.nn.Arithmetic", "symbol", "left_lacks", "right_lacks", left="left", right="right"
)


class Arithmetic(Op):
    """Base of + − × ÷ and power: two values, or a value and a constant.

    Axes of one name stand over each other, plain ones from the last; what one value lacks is repeated.
    """

    symbol: ClassVar[str]

    left: float | None = setting(None, doc="a constant instead of the left operand")
    right: float | None = setting(None, doc="a constant instead of the right operand")

    def slots_of(self, count: int) -> tuple[str, ...]:
        return ("left", "right") if count == 2 else super().slots_of(count)

    def bind(self, *found: TensorType, **known: Any) -> Signature:
        for at, type_ in enumerate(found):
            if type_.dtype != "float":
                raise Misfit(f"arithmetic is for float values, not {type_}", "", at)
        if self.left is not None and self.right is not None:
            raise Misfit("with two constants it takes no value", "leave one of left and right out")
        wanted = 1 if self.left is not None or self.right is not None else 2
        if len(found) != wanted:
            raise Misfit(f"it takes {shown_count(wanted, 'operand')} here, not {len(found)}")
        axes = Axes(self)
        type_, lacks = self._broadcast(found)
        axes.bound["left_lacks"], axes.bound["right_lacks"] = lacks[0], lacks[-1]
        return Signature(self, found, axes, (type_,))

    def on_tape(self, use: Use, *operands: Value) -> tuple[Value, ...]:
        (count,) = use.results
        if len(operands) == 1:
            return (self.with_constant(use.tape, count, *operands),)
        return (self.of_two(use.tape, count, *operands),)

    def with_constant(self, tape: Tape, count: float, x: Value) -> Value:
        """A value and a constant, on the tape."""
        return tape.function(x, "nothing")

    def of_two(self, tape: Tape, count: float, left: Value, right: Value) -> Value:
        """Two values, on the tape."""
        return tape.add(count, left, right)

    def _broadcast(self, found: tuple[TensorType, ...]) -> tuple[TensorType, list[tuple[int, ...]]]:
        """The type of the result, and for each operand the axes it lacks, counted from the last of the result's."""
        shapes = [type_.shape for type_ in found]
        ordered = sorted(shapes, key=len)
        inner, outer = ordered[0], ordered[-1]
        positions = laid(inner, outer)
        if positions is None:
            reason = f'the shapes {" and ".join(map(shown, shapes))} do not fit together under "{self.symbol}"'
            raise Misfit(reason, _way_out(*shapes))
        result = list(outer)
        for axis, at in zip(inner, positions, strict=True):
            result[at] = broadcast(result[at], axis)
        lacking = tuple(at - len(outer) for at in range(len(outer)) if at not in positions)
        lacks = [() if len(shape) == len(outer) else lacking for shape in shapes]
        over_batch = all(type_.per == "batch" for type_ in found)
        shape = once_each(tuple(result))
        return TensorType("float", shape, per="batch" if over_batch else "example"), lacks


def _way_out(left: Shape, right: Shape) -> str:
    """What to do where two values fit but for the names of their axes."""
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one.size == other.size and one.name != other.name and one.name and other.name:
            meant = f'-> rename({other.name}="{one.name}")' if "." not in one.name + other.name else "rename one"
            meant = "give them one name where they are declared" if one.is_padded else meant
            return f'"{one.name}" and "{other.name}" are axes of unlike things; if the same is meant: {meant}'
    return ""


class Add(Arithmetic):
    """Sum of two values."""

    name, symbol = "add", "+"
    example = "input x: float[5, 6] y = x + x output y"
    module = ARITHMETIC_MODULE


class Subtract(Arithmetic):
    """Difference of two values."""

    name, symbol = "subtract", "-"
    example = "input x: float[5, 6] y = x - 1 output y"
    module = ARITHMETIC_MODULE


class Multiply(Arithmetic):
    """Product of two values, element by element."""

    name, symbol = "multiply", "*"
    example = "input x: float[5, 6] y = 2 * x output y"
    module = ARITHMETIC_MODULE

    def of_two(self, tape: Tape, count: float, left: Value, right: Value) -> Value:
        return tape.times(count, left, right)


class Divide(Arithmetic):
    """Quotient of two values, element by element."""

    name, symbol = "divide", "/"
    example = "input x: float[5] y = 1 / x output y"
    module = ARITHMETIC_MODULE

    def with_constant(self, tape: Tape, count: float, x: Value) -> Value:
        if self.left is None:
            return tape.function(x, "nothing")
        return tape.function(tape.function(x, "result"), "nothing")

    def of_two(self, tape: Tape, count: float, left: Value, right: Value) -> Value:
        return tape.quotient(count, left, right)


class Power(Arithmetic):
    """One value to the power of another, element by element."""

    name, symbol = "power", "**"
    example = "input x: float[5, 6] y = x ** 2 output y"
    module = ARITHMETIC_MODULE

    def with_constant(self, tape: Tape, count: float, x: Value) -> Value:
        return tape.function(x, "operand" if self.left is None else "result")

    def of_two(self, tape: Tape, count: float, left: Value, right: Value) -> Value:
        return tape.make(count, left, right, keeps=[left, right], keeps_result=True)


ARITHMETIC = {op.symbol: op for op in (Add, Subtract, Multiply, Divide, Power)}
