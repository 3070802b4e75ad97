"""Linear maps, plain and modulated."""

from __future__ import annotations

from itertools import pairwise

from modgraph.declare import ONES, ZEROS, Operand, Weight, own_module, setting, uniform
from modgraph.ops.op import Op
from modgraph.types import Axes, Axis, Misfit, derived

VECTORS = (Operand("x", "... D"),)
LENGTH = "length of the result's last axis; of a pool or a named axis, its own"
ACTIVATIONS = {"relu": "result", "gelu": "operand", "tanh": "result", "silu": "operand"}  # what is kept of each


class Linear(Op, name="linear", synonyms="dense fc fully_connected affine projection proj"):
    """Map the last axis by a learned matrix: y = x Wᵀ + b.

    `linear(expert)` of a pool has as many results as there are modules, along the pool's axis: scores. `linear(kind)`
    of an axis that a type declares, `class[kind=10]`, is as long as that, and along it.
    """

    example = "input x: float[5, 6] y = x -> linear(3) output y"
    operands = VECTORS
    results = ("... W",)
    weights = (Weight("weight", "W D", uniform("D")), Weight("bias", "W", uniform("D"), when="bias"))
    module = own_module("D", "width", bias="bias")
    affine = True
    gathers = True

    width: int = setting(min=1, extent="named", doc=LENGTH)
    bias: bool = setting(True, doc="add a learned vector")
    named: str = setting("", axis=True, doc="what that axis is called")

    def check(self, axes: Axes) -> None:
        axes.bound["W"] = Axis(self.width, self.named)

    def macs(self, D: int) -> int:
        return D * self.width


CODE = Weight("code", "code_width", uniform("code_width"))


def modulated(before: str, after: str, path: str = "") -> tuple[Weight, ...]:
    """The weights of a linear map from one axis to another, and of the map from codes to its input, below a path."""
    return (
        Weight(f"{path}weight", f"{after} {before}", uniform(before), shared=True),
        Weight(f"{path}bias", after, ZEROS, shared=True),
        Weight(f"{path}code_weight", f"{before} code_width", CODE.initial, shared=True),
    )


class ModulatedLinear(Op, name="modulated_linear", synonyms="film hypernetwork"):
    """A linear map whose input is scaled by a learned code: y = W (x ⊙ LayerNorm(Wc c)) + b.

    LayerNorm has no weights and adds 1e-5 to the variance. In a pool, W, b and Wc are shared and each module has a code
    c of its own (Hu et al., ICLR 2024, equation 12).
    The projection of the codes does not depend on the example and is not counted in its MACs.
    """

    example = "input x: float[5, 6] y = x -> modulated_linear(3) output y"
    operands = VECTORS
    results = ("... width",)
    weights = (*modulated("D", "width"), CODE)
    module = own_module("D", "width", "code_width")
    affine = True
    gathers = True

    width: int = setting(min=1, doc="length of the result's last axis")
    code: int | None = setting(None, min=1, doc="length of a code; the width if not given")

    @derived
    def code_width(self) -> int:
        return self.code or self.width

    def macs(self, D: int) -> int:
        return D * self.width


class ModulatedMLP(Op, name="modulated_mlp"):
    """Modulated linear maps with an activation between them, all conditioned on one code per module.

    Hu et al., ICLR 2024, equation 13.
    """

    example = "input x: float[5, 6] y = x -> modulated_mlp([7, 3]) output y"
    operands = VECTORS
    results = ("... width",)
    module = own_module("D", "widths", "code_width", activation="activation")
    gathers = True

    widths: tuple[int, ...] = setting(min=1, doc="widths of the layers, the result's last")
    activation: str = setting("relu", choices=("relu", "gelu", "tanh", "silu"), doc="between layers")
    code: int | None = setting(None, min=1, doc="length of a code; the last width if not given")

    @derived
    def width(self) -> int:
        return self.widths[-1]

    @derived
    def code_width(self) -> int:
        return self.code or self.widths[-1]

    def check(self, axes: Axes) -> None:
        if not self.widths:
            raise Misfit("it needs at least one width", "for example: modulated_mlp([64, 384])")

    def all_weights(self) -> tuple[Weight, ...]:
        layers = enumerate(pairwise(("D", *map(str, self.widths))))
        return (*(weight for layer, widths in layers for weight in modulated(*widths, f"{layer}.")), CODE)

    def macs(self, D: int) -> int:
        widths = (D, *self.widths)
        return sum(before * after for before, after in pairwise(widths))


class Scale(Op, name="scale", synonyms="gain layer_scale"):
    """Multiply the last axis by a learned vector that starts at one."""

    operands = VECTORS
    results = ("... D",)
    weights = (Weight("weight", "D", ONES),)
    module = own_module("D")
    keeps_zeros = True
    affine = True
    gathers = True
