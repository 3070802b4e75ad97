"""Functions of each number of a value, that of mathematics."""

from __future__ import annotations

from modgraph.declare import TorchModule, own_module, setting
from modgraph.ops.compared import Greater, Less
from modgraph.ops.op import Op
from modgraph.types import Axes, Misfit


class Function(Op):
    """Base of those that torch has as functions of the same name."""

    module = TorchModule("modgraph.nn.Elementwise", "name")


class Exp(Function):
    """e to the power of x."""

    name = "exp"
    synonyms = ("exponential",)


class Log(Function):
    """The natural logarithm; where nothing depends on it, no gradient flows, even at zero."""

    name = "log"
    synonyms = ("logarithm",)
    example = "input x: float[5, 6] y = x ** 2 + 0.1 -> log output y"


class Sqrt(Function):
    """The square root; where nothing depends on it, no gradient flows, even at zero."""

    name = "sqrt"
    synonyms = ("square_root",)
    example = "input x: float[5, 6] y = x ** 2 + 0.1 -> sqrt output y"
    keeps_zeros = True


class Sin(Function):
    """The sine of x, in radians."""

    name = "sin"
    synonyms = ("sine",)
    keeps_zeros = True


class Cos(Function):
    """The cosine of x, in radians."""

    name = "cos"


class Abs(Function):
    """x where it is positive, −x elsewhere."""

    name = "abs"
    synonyms = ("absolute", "fabs")
    keeps_zeros = True


class Sign(Function):
    """−1, 0 or 1, without gradient."""

    name = "sign"
    synonyms = ("sgn",)
    nondifferentiable = ("x",)
    keeps_zeros = True


class Erf(Function):
    """The error function: 2/√π times the integral of exp(−t²) from 0 to x."""

    name = "erf"
    keeps_zeros = True


class Clamp(Op):
    """x, but no less than `min` and no more than `max`; either may be left out. Beyond them there is no gradient."""

    name = "clamp"
    synonyms = ("clip", "clip_by_value")
    example = "input x: float[5, 6] y = x -> clamp(min=-0.5, max=1) output y"
    module = own_module("min", "max")

    min: float | None = setting(None, doc="the least value")
    max: float | None = setting(None, doc="the largest value")

    def zero_with(self) -> tuple[int, ...]:
        return (0,) if (self.min is None or self.min <= 0) and (self.max is None or self.max >= 0) else ()

    def zero_where(self) -> tuple[int, Op] | None:
        if self.min == 0:
            return 0, Less(right=0.0)
        return (0, Greater(right=0.0)) if self.max == 0 else None

    def check(self, axes: Axes) -> None:
        if self.min is None and self.max is None:
            raise Misfit("it has no bound", "say one or both: clamp(min=0, max=1)")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise Misfit(
                f"its min, {self.min}, is more than its max, {self.max}", "min comes first: clamp(min=0, max=1)"
            )
