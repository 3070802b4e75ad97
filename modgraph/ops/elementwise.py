"""Elementwise functions: mathematical ones, activations, and the masking of padding."""

from __future__ import annotations

from functools import partial

from modgraph.declare import TorchModule, own_module, setting
from modgraph.declare.indexing import read_pointwise
from modgraph.ops.compared import Greater, Less, LessEqual
from modgraph.ops.op import Op, function
from modgraph.types import Axes, Misfit

declare = partial(function, __name__, TorchModule("modgraph.nn.Elementwise", "name"))
torch_function = partial(function, __name__, None)

Exp = declare("Exp", "e to the power of x.", "exponential")
NO_GRADIENT = "where nothing depends on it, no gradient flows, even at zero."
POSITIVE = "input x: float[5, 6] y = x ** 2 + 0.1 -> {} output y"
Log = declare("Log", f"The natural logarithm; {NO_GRADIENT}", "logarithm", example=POSITIVE.format("log"))
Sqrt = declare(
    "Sqrt", f"The square root; {NO_GRADIENT}", "square_root", keeps_zeros=True, example=POSITIVE.format("sqrt")
)
Sin = declare("Sin", "The sine of x, in radians.", "sine", keeps_zeros=True)
Cos = declare("Cos", "The cosine of x, in radians.")
Abs = declare("Abs", "x where it is positive, −x elsewhere.", "absolute fabs", keeps_zeros=True)
Sign = declare("Sign", "−1, 0 or 1, without gradient.", "sgn", keeps_zeros=True, nondifferentiable=("x",))
WHOLE = "without gradient; (x, x -> {}) -> straight_through passes one."
Round = declare(
    "Round",
    f"The nearest whole number, of two the even one, {WHOLE.format('round')}",
    "rint quantize",
    keeps_zeros=True,
    nondifferentiable=("x",),
)
Floor = declare(
    "Floor",
    f"The largest whole number that is not larger, {WHOLE.format('floor')}",
    keeps_zeros=True,
    nondifferentiable=("x",),
)
Erf = declare("Erf", "The error function: 2/√π times the integral of exp(−t²) from 0 to x.", keeps_zeros=True)


class Clamp(Op, name="clamp", synonyms="clip clip_by_value"):
    """x clamped to the range from `min` to `max`; either may be omitted. Outside the range there is no gradient."""

    example = "input x: float[5, 6] y = x -> clamp(min=-0.5, max=1) output y"
    module = own_module("min", "max")
    indexing = read_pointwise

    min: float | None = setting(None, doc="lower bound")
    max: float | None = setting(None, doc="upper bound")

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
            reason = f"its min, {self.min}, is more than its max, {self.max}"
            raise Misfit(reason, "min comes first: clamp(min=0, max=1)")


class ReLU(Op, name="relu"):
    """max(0, x).

    Its zeros are a choice: where gates are zero, modules do not run. `record choice = gates > 0` names the choice.
    """

    module = TorchModule("torch.nn.ReLU")
    indexing = read_pointwise
    keeps_zeros = True

    def zero_where(self) -> tuple[int, Op] | None:
        return 0, LessEqual(right=0.0)


class LeakyReLU(Op, name="leaky_relu", synonyms="lrelu"):
    """x where it is positive, else slope · x."""

    torch_arguments = "negative_slope=slope"
    module = TorchModule("torch.nn.LeakyReLU", "slope")
    indexing = read_pointwise
    keeps_zeros = True

    slope: float = setting(0.01, min=0, doc="slope for negative values")


class GELU(Op, name="gelu"):
    """x Φ(x), Φ the normal distribution function, exact or approximated by tanh.

    The approximation is x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, as in GPT-2 (Hendrycks and Gimpel, 2016).
    """

    example = 'input x: float[5, 6] y = x -> gelu(approximate="tanh") output y'
    module = TorchModule("torch.nn.GELU", approximate="approximate")
    indexing = read_pointwise
    keeps_zeros = True

    approximate: str = setting("none", choices=("none", "tanh"), doc="the approximation of Φ")


SiLU = torch_function("SiLU", "x σ(x).", "swish", keeps_zeros=True)
ELU = torch_function("ELU", "x where it is positive, exp(x) − 1 elsewhere.", keeps_zeros=True)
Softplus = torch_function("Softplus", "log(1 + exp(x)).")
Tanh = torch_function("Tanh", "Hyperbolic tangent.", keeps_zeros=True)
Sigmoid = torch_function("Sigmoid", "1 / (1 + exp(−x)).")
Identity = torch_function("Identity", "The value itself.", "noop passthrough", keeps_zeros=True, affine=True)


class MaskPadding(Op, name="mask_padding"):
    """x with zeros in padding; padding then affects neither values nor gradients."""

    masks = "..."
    affine = True
    narrows = "x"
    indexing = read_pointwise
