"""Functions of each value."""

from __future__ import annotations

from modgraph.declare import TorchModule, setting
from modgraph.ops.compared import LessEqual
from modgraph.ops.op import Op


class ReLU(Op):
    """max(0, x)."""

    name = "relu"
    module = TorchModule("torch.nn.ReLU")
    keeps_zeros = True

    def zero_where(self) -> tuple[int, Op] | None:
        return 0, LessEqual(right=0.0)


class LeakyReLU(Op):
    """x where it is positive, slope · x elsewhere."""

    name = "leaky_relu"
    synonyms = ("lrelu",)
    module = TorchModule("torch.nn.LeakyReLU", "slope")
    keeps_zeros = True

    slope: float = setting(0.01, min=0, doc="slope below zero")


class GELU(Op):
    """x Φ(x), Φ the normal distribution function (exact, not the tanh approximation)."""

    name = "gelu"
    module = TorchModule("torch.nn.GELU")
    keeps_zeros = True


class SiLU(Op):
    """x σ(x)."""

    name = "silu"
    synonyms = ("swish",)
    module = TorchModule("torch.nn.SiLU")
    keeps_zeros = True


class ELU(Op):
    """x where it is positive, exp(x) − 1 elsewhere."""

    name = "elu"
    module = TorchModule("torch.nn.ELU")
    keeps_zeros = True


class Softplus(Op):
    """log(1 + exp(x))."""

    name = "softplus"
    module = TorchModule("torch.nn.Softplus")


class Tanh(Op):
    """Hyperbolic tangent."""

    name = "tanh"
    module = TorchModule("torch.nn.Tanh")
    keeps_zeros = True


class Sigmoid(Op):
    """1 / (1 + exp(−x))."""

    name = "sigmoid"
    module = TorchModule("torch.nn.Sigmoid")


class Identity(Op):
    """The value itself."""

    name = "identity"
    synonyms = ("noop", "passthrough")
    module = TorchModule("torch.nn.Identity")
    keeps_zeros = True
    affine = True
