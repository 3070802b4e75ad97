"""Choices: values of ones and zeros that say what takes part."""

from __future__ import annotations

from modgraph.declare import Operand, Signature, TorchModule, Use, axis_setting, position_of, setting
from modgraph.ops.along_axis import AlongAxis
from modgraph.ops.op import Op
from modgraph.tape import Value
from modgraph.types import Axes, Axis, Misfit, TensorType


class TopK(Op):
    """One at the k largest values along an axis, of equal ones the first, and zero elsewhere.

    Padding is never chosen; of a shorter sequence, all. No gradient passes. A value times a choice along the modules of
    a pool is zero for all others, so a route by it computes the chosen modules alone.
    """

    name = "top_k"
    synonyms = ("topk", "top_k_mask", "argmax", "one_hot")
    example = "input x: float[5, 6] y = x -> top_k(2) output y"
    module = TorchModule("modgraph.nn.TopKMask", "position", "k")
    keeps = "nothing"

    k: int = setting(1, min=1, doc="how many are chosen")
    axis: int | str = axis_setting(-1)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        position = position_of(self.axis, found[0], self.name)
        axis = found[0].shape[position]
        if not axis.name and axis.size is not None and self.k > axis.size:
            raise Misfit(f"it chooses k={self.k} of {axis}", f"lower k to {axis} or less")
        axes.bound["position"] = position
        return (found[0],)

    def masked(self, signature: Signature) -> tuple[Axis, ...]:
        return (signature.operands[0].shape[signature.axes["position"]],)

    def chosen(self, signature: Signature) -> tuple[int, int]:
        return signature.axes["position"], self.k

    def on_tape(self, use: Use, x: Value) -> tuple[Value, ...]:
        return (use.tape.drawn(use.result),)


class MaskedSoftmax(AlongAxis):
    """exp(x) / Σ exp(x) among what a choice is not zero for; zero elsewhere, and where nothing is chosen."""

    name = "masked_softmax"
    synonyms = ("sparse_softmax", "softmax_among")
    example = "input x: float[5, 6] y = (x, x -> top_k(2)) -> masked_softmax output y"
    operands = (Operand("x", "..."), Operand("choice", "..."))
    module = TorchModule("modgraph.nn.MaskedSoftmax", "position")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = super().infer(axes, found)
        return (x.with_shape(axes.lead or ()),)

    def zero_with(self) -> tuple[int, ...]:
        return (1,)

    def on_tape(self, use: Use, x: Value, choice: Value) -> tuple[Value, ...]:
        tape = use.tape
        x = tape.make(x.count, use.cleared(x), keeps_more=x.count)
        return (tape.make(x.count, tape.function(x, "result"), keeps_more=x.count),)
