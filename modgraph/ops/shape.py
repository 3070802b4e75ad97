"""Ops that join, cut and reduce axes, and arithmetic between values."""

from __future__ import annotations

from typing import ClassVar

from modgraph.declare import Operand, Signature, TorchModule, product, setting
from modgraph.ops.linear import VECTORS
from modgraph.ops.op import Op
from modgraph.types import Axes, Axis, Misfit, TensorType, floats, shown


class Flatten(Op):
    """Put everything an example holds into one axis."""

    name = "flatten"
    synonyms = ("reshape", "view")
    example = "input x: float[5, 6] y = x -> flatten output y"
    module = TorchModule("modgraph.nn.Flatten", "rank")
    affine = True

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if found[0].symbolic:
            raise Misfit(f'flatten needs fixed lengths, and "{found[0].symbolic[0]}" has none', "reduce it first")
        return (floats(product(found[0].shape)),)


class Concat(Op):
    """Join several values along their last axis; all other axes agree."""

    name = "concat"
    synonyms = ("cat", "concatenate", "join")
    example = "input x: float[5, 6] y = (x, x) -> concat output y"
    operands = (Operand("x", "..."),)
    variadic = True
    module = TorchModule("modgraph.nn.Concat")

    def bind(self, *found: TensorType, **known: Axis) -> Signature:
        if not found or any(type_.dtype != "float" for type_ in found):
            raise Misfit("concat joins float values", "write (a, b) -> concat")
        return Signature(self, found, Axes(self), (floats(*self._joined(found)),))

    def _joined(self, found: tuple[TensorType, ...]) -> tuple[Axis, ...]:
        first = found[0].shape
        total = 0
        for at, type_ in enumerate(found):
            if not type_.shape or type_.shape[:-1] != first[:-1]:
                raise Misfit(f"cannot join {shown(first)} and {shown(type_.shape)} along the last axis", "", at)
            last = type_.shape[-1]
            if not isinstance(last, int):
                raise Misfit(f'cannot join along the axis "{last}", which has no fixed length', "", at)
            total += last
        return (*first[:-1], total)


class Split(Op):
    """Cut the last axis into `parts` of equal length: `a, b = x -> split(2)`."""

    name = "split"
    synonyms = ("chunk",)
    example = "input x: float[5, 6] y, z = x -> split(2) output y output z"
    operands = VECTORS
    module = TorchModule("modgraph.nn.Split", "parts")

    parts: int = setting(min=2, max=256, doc="number of parts")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        last = axes["D"]
        if not isinstance(last, int) or last % self.parts:
            raise Misfit(f"{self.parts} parts do not divide an axis of {last}", "choose parts that do")
        return (floats(*found[0].shape[:-1], last // self.parts),) * self.parts


class _Reduction(Op):
    """Reduce one axis, padding left out; by default the tokens of [N, D]."""

    axis: int = setting(-2, max=-1, doc="which axis, counted from the last: -1, -2, …")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        shape = found[0].shape
        if -self.axis > len(shape):
            advice = f"write {self.name}(axis=-1)" if shape else "it is a single number already"
            raise Misfit(f"{self.name} reduces axis {self.axis}, but the value has the axes {shown(shape)}", advice)
        at = len(shape) + self.axis
        return (floats(*shape[:at], *shape[at + 1 :]),)

    def masked(self, axes: Axes) -> str | None:
        axis = (axes.lead or ())[self.axis]
        return axis if isinstance(axis, str) else None


class Mean(_Reduction):
    """The mean over an axis."""

    name = "mean"
    synonyms = ("average", "avg", "global_average_pool", "gap")
    example = "input x: float[5, 6] y = x -> mean output y"
    module = TorchModule("modgraph.nn.Mean", "axis")
    affine = True


class Sum(_Reduction):
    """The sum over an axis."""

    name = "sum"
    synonyms = ("reduce_sum",)
    example = "input x: float[5, 6] y = x -> sum output y"
    module = TorchModule("modgraph.nn.Sum", "axis")
    affine = True


class Max(_Reduction):
    """The largest value along an axis."""

    name = "max"
    example = "input x: float[5, 6] y = x -> max output y"
    module = TorchModule("modgraph.nn.Max", "axis")


class Last(_Reduction):
    """The last value along an axis, padding left out: of a sequence of states, the final one; of nothing, zero."""

    name = "last"
    example = "input x: float[5, 6] y = x -> last output y"
    module = TorchModule("modgraph.nn.Last", "axis")
    affine = True


ARITHMETIC_MODULE = TorchModule(
    "modgraph.nn.Arithmetic", "symbol", "left_rank", "right_rank", left="left", right="right"
)


class Arithmetic(Op):
    """Base of + − × ÷ and power: values of broadcast shapes, or a value and a constant."""

    symbol: ClassVar[str]

    left: float | None = setting(None, doc="a constant instead of the left operand")
    right: float | None = setting(None, doc="a constant instead of the right operand")

    def bind(self, *found: TensorType, **known: Axis) -> Signature:
        for at, type_ in enumerate(found):
            if type_.dtype != "float":
                raise Misfit(f"arithmetic is for float values, not {type_}", "", at)
        if self.left is not None and self.right is not None:
            raise Misfit(f"{self.name} of two constants takes no value", "leave one of left and right out")
        wanted = 1 if self.left is not None or self.right is not None else 2
        if len(found) != wanted:
            raise Misfit(f"{self.name} takes {wanted} operands here, not {len(found)}")
        axes = Axes(self)
        ranks = [len(type_.shape) for type_ in found]
        axes.bound["left_rank"] = 0 if self.left is not None else ranks[0]
        axes.bound["right_rank"] = 0 if self.right is not None else ranks[-1]
        return Signature(self, found, axes, (self._broadcast(found),))

    def _broadcast(self, found: tuple[TensorType, ...]) -> TensorType:
        rank = max(len(type_.shape) for type_ in found)
        padded = [(1,) * (rank - len(type_.shape)) + type_.shape for type_ in found]
        shape: list[Axis] = []
        for lengths in zip(*padded, strict=True):
            distinct = {length for length in lengths if length != 1}
            if len(distinct) > 1:
                shapes = f"{shown(found[0].shape)} and {shown(found[1].shape)}"
                raise Misfit(f'the shapes {shapes} do not fit together under "{self.symbol}"')
            shape.append(distinct.pop() if distinct else 1)
        per_batch = all(type_.per == "batch" for type_ in found)
        return TensorType("float", tuple(shape), per="batch" if per_batch else "example")


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


class Divide(Arithmetic):
    """Quotient of two values, element by element."""

    name, symbol = "divide", "/"
    example = "input x: float[5] y = 1 / x output y"
    module = ARITHMETIC_MODULE


class Power(Arithmetic):
    """One value to the power of another, element by element."""

    name, symbol = "power", "**"
    example = "input x: float[5, 6] y = x ** 2 output y"
    module = ARITHMETIC_MODULE


ARITHMETIC = {op.symbol: op for op in (Add, Subtract, Multiply, Divide, Power)}
