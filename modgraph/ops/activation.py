"""Functions of each value."""

from __future__ import annotations

from functools import partial

from modgraph.declare import TorchModule, setting
from modgraph.ops.compared import LessEqual
from modgraph.ops.op import Op, function


class ReLU(Op, name="relu"):
    """max(0, x)."""

    module = TorchModule("torch.nn.ReLU")
    keeps_zeros = True

    def zero_where(self) -> tuple[int, Op] | None:
        return 0, LessEqual(right=0.0)


class LeakyReLU(Op, name="leaky_relu", synonyms="lrelu"):
    """x where it is positive, slope · x elsewhere."""

    module = TorchModule("torch.nn.LeakyReLU", "slope")
    keeps_zeros = True

    slope: float = setting(0.01, min=0, doc="slope below zero")


declare = partial(function, __name__, None)

NORMAL = "x Φ(x), Φ the normal distribution function (exact, not the tanh approximation)."
GELU = declare("GELU", NORMAL, keeps_zeros=True)
SiLU = declare("SiLU", "x σ(x).", "swish", keeps_zeros=True)
ELU = declare("ELU", "x where it is positive, exp(x) − 1 elsewhere.", keeps_zeros=True)
Softplus = declare("Softplus", "log(1 + exp(x)).")
Tanh = declare("Tanh", "Hyperbolic tangent.", keeps_zeros=True)
Sigmoid = declare("Sigmoid", "1 / (1 + exp(−x)).")
Identity = declare("Identity", "The value itself.", "noop passthrough", keeps_zeros=True, affine=True)
