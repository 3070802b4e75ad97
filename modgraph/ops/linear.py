"""Linear maps, plain and modulated, a learned scale, and contractions of two values."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from string import ascii_letters
from typing import Any

from modgraph import declare
from modgraph.declare import ONES, ZEROS, Operand, Signature, Weight, own_module, position_of, setting, sizes, uniform
from modgraph.declare.indexing import Indexing, Reading, Use, follow_equation, match_patterns
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bound, Bounds, Propagated
from modgraph.types import Axes, Axis, Misfit, TensorType, infer_axis, may_meet, meet_axes, require_distinct

VECTORS = (Operand("x", "... D"),)
LENGTH = "length of the result's last axis; a pool or a named axis gives its own"
ACTIVATIONS = {
    "relu": "result",
    "gelu": "operand",
    "tanh": "result",
    "silu": "operand",
}  # the tensor that each keeps for backward


class Linear(Op, name="linear", synonyms="dense fc fully_connected affine projection proj"):
    """Project the last axis by a learned matrix: y = x Wᵀ + b.

    `linear(expert)` gives a score for each module of the pool `expert`, along the pool's axis. `linear(kind)` gives a
    number for each class of an axis that a type declares, such as `class[kind=10]`.
    """

    torch_arguments = "in_features= out_features=width bias=bias"
    example = "input x: float[5, 6] y = x -> linear(3) output y"
    operands = VECTORS
    results = ("... W",)
    weights = (Weight("weight", "W D", uniform("D")), Weight("bias", "W", uniform("D"), when="bias"))
    module = own_module("D", "width", bias="bias")
    affine = True
    gathers = True

    width: int = setting(min=1, extent="named", doc=LENGTH)
    bias: bool = setting(True, doc="add a learned bias")
    named: str = setting("", axis=True, doc="name of the result's last axis")

    def check(self, axes: Axes) -> None:
        axes.bound["W"] = Axis(self.width, self.named)

    def macs(self, D: int) -> int:
        return D * self.width


CODE = Weight("code", "code_width", uniform("code_width"))


def make_modulated_weights(before: str, after: str, path: str = "") -> tuple[Weight, ...]:
    """Declare the weights below a path: a linear map between two axes, and the projection of codes to its input."""
    return (
        Weight(f"{path}weight", f"{after} {before}", uniform(before), shared=True),
        Weight(f"{path}bias", after, ZEROS, shared=True),
        Weight(f"{path}code_weight", f"{before} code_width", CODE.initial, shared=True),
    )


class ModulatedLinear(Op, name="modulated_linear", synonyms="film hypernetwork"):
    """A linear map that scales its input by a learned code: y = W (x ⊙ LayerNorm(Wc c)) + b.

    LayerNorm has no weights and adds 1e-5 to the variance. The modules of a pool share W, b and Wc; each has its own
    code c (Hu et al., ICLR 2024, equation 12). The projection of the codes does not depend on the example, so its MACs
    do not count.
    """

    example = "input x: float[5, 6] y = x -> modulated_linear(3) output y"
    operands = VECTORS
    results = ("... width",)
    weights = (*make_modulated_weights("D", "width"), CODE)
    module = own_module("D", "width", "code_width")
    affine = True
    gathers = True

    width: int = setting(min=1, doc="length of the result's last axis")
    code: int | None = setting(None, min=1, doc="length of a code; the width if not given")

    @infer_axis
    def code_width(self) -> int:
        return self.code or self.width

    def macs(self, D: int) -> int:
        return D * self.width


class ModulatedMLP(Op, name="modulated_mlp"):
    """Modulated linear maps with an activation between them; one code per module conditions all of them.

    Hu et al., ICLR 2024, equation 13.
    """

    example = "input x: float[5, 6] y = x -> modulated_mlp([7, 3]) output y"
    operands = VECTORS
    results = ("... width",)
    module = own_module("D", "widths", "code_width", activation="activation")
    gathers = True

    widths: tuple[int, ...] = setting(min=1, doc="widths of the layers; the last is the result's")
    activation: str = setting("relu", choices=("relu", "gelu", "tanh", "silu"), doc="activation between layers")
    code: int | None = setting(None, min=1, doc="length of a code; the last width if not given")

    @infer_axis
    def width(self) -> int:
        return self.widths[-1]

    @infer_axis
    def code_width(self) -> int:
        return self.code or self.widths[-1]

    def check(self, axes: Axes) -> None:
        if not self.widths:
            raise Misfit("it needs at least one width", "for example: modulated_mlp([64, 384])")

    def all_weights(self) -> tuple[Weight, ...]:
        layers = enumerate(pairwise(("D", *map(str, self.widths))))
        return (*(weight for layer, widths in layers for weight in make_modulated_weights(*widths, f"{layer}.")), CODE)

    def macs(self, D: int) -> int:
        widths = (D, *self.widths)
        return sum(before * after for before, after in pairwise(widths))


class Scale(Op, name="scale", synonyms="gain layer_scale"):
    """Multiply the last axis by a learned vector of initial value one."""

    operands = VECTORS
    results = ("... D",)
    weights = (Weight("weight", "D", ONES),)
    module = own_module("D")
    indexing = match_patterns("D")
    keeps_zeros = True
    affine = True
    gathers = True


class Contract(Op, name="contract", synonyms="inner"):
    """Sum the products of two values over an axis, without padding: Σ_d left[…, d] right[…, d].

    Named axes that both values have are aligned. The result keeps all other axes, those of the left value first.
    """

    example = "input q: float[5, 6] input k: float[7, 6] y = (q, k) -> contract output y"
    operands = (Operand("left", "..."), Operand("right", "..."))
    module = own_module("equation")
    masks = "over"
    masks_each = True
    broadcasts = True

    axis: int | str = declare.axis_setting(-1)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != 2 or any(type_.dtype != "float" for type_ in found):
            raise Misfit("it takes two float values", "write (a, b) -> contract")
        positions = [len(type_.shape) + position_of(self.axis, type_, self.name) for type_ in found]
        left, right = (type_.shape for type_ in found)
        over = left[positions[0]], right[positions[1]]
        if not may_meet(*over):
            both = [axis.name for axis in left if axis.name and axis in right]
            advice = f'name an axis that both have: contract(axis="{both[0]}")' if both else ""
            raise Misfit(f"it cannot sum over {over[0]} and {over[1]}, which are not one axis", advice)
        letters = iter(ascii_letters)
        first = [next(letters) for _ in left]
        by_name = {axis.name: letter for axis, letter in zip(left, first, strict=True) if axis.name}
        second = [
            first[positions[0]] if at == positions[1] else by_name.get(axis.name) or next(letters)
            for at, axis in enumerate(right)
        ]
        if len({*second}) < len(second):
            reason = f'it sums over "{over[0].name}", and the second value has another axis of that name'
            raise Misfit(reason, "rename one of them")
        kept = {
            letter: axis
            for letter, axis in (*zip(second, right, strict=True), *zip(first, left, strict=True))
            if letter != first[positions[0]]
        }
        order = [letter for letter in dict.fromkeys((*first, *second)) if letter in kept]
        axes.bound["equation"] = f"...{''.join(first)},...{''.join(second)}->...{''.join(order)}"
        axes.bound["over"] = meet_axes(*over)
        axes.bound["kept"] = tuple(kept[letter] for letter in order)
        over_batch = all(type_.per == "batch" for type_ in found)
        result = TensorType("float", require_distinct(axes.bound["kept"]), per="batch" if over_batch else "example")
        return (result,)

    def indexing(self, use: Use) -> Indexing:
        terms, result = use.signature.axes["equation"].replace("...", "").split("->")
        axes = zip(terms.replace(",", ""), (axis for shape in use.shapes for axis in shape), strict=True)
        places = follow_equation(terms.split(","), result, dict(axes))
        return (tuple(Reading(number, each, guards=True) for number, each in enumerate(places)),)

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        terms, result = signature.axes["equation"].replace("...", "").split("->")
        (over,) = {*terms} - {*result, ","}
        bounds = [
            (term[bound.place], bound.k)
            for term, bound in zip(terms.split(","), known, strict=True)
            if bound is not None and bound.place is not None
        ]
        if any(letter == over for letter, _ in bounds):
            return None
        letter, k = bounds[0] if bounds else ("", None)
        size = signature.axes["over"].size
        return self, Bound(result.index(letter) - len(result), k and size and k * size) if letter else ANYWHERE

    def macs(self, over: int, kept: Any) -> int:
        return over * prod(sizes(kept))
