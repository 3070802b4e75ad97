"""Ops along one axis, which is given by its name or counted from the last: reductions and softmax."""

from __future__ import annotations

from typing import Any

from modgraph.declare import Signature, TorchModule, axis_setting, position_of
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bound, Bounds, drop_axis, move_bound
from modgraph.types import Axes, Misfit, TensorType


class AlongAxis(Op):
    """Works along one axis, padding left out."""

    masks = "position"

    axis: int | str = axis_setting(-1)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        position = position_of(self.axis, found[0], self.name)
        axes.bound["position"] = position
        return (self.result(found[0], position),)

    def result(self, x: TensorType, position: int) -> TensorType:
        """The type of the result, by default that of the operand."""
        return x


class Softmax(AlongAxis):
    """exp(x) / Σ exp(x) along an axis; zero in padding."""

    name = "softmax"
    takes_logits = "x"
    example = "input x: float[5, 6] y = x -> softmax output y"
    module = TorchModule("modgraph.nn.Softmax", "position")


class LogSoftmax(AlongAxis):
    """x − log Σ exp(x) along an axis; zero in padding."""

    name = "log_softmax"
    takes_logits = "x"
    example = "input x: float[5, 6] y = x -> log_softmax output y"
    module = TorchModule("modgraph.nn.LogSoftmax", "position")


class Unit(AlongAxis):
    """x / max(‖x‖, 1e-8) along an axis: vectors of length one, so that the contraction of two is their cosine."""

    name = "unit"
    synonyms = ("l2_normalize", "unit_norm", "normalize", "normalise")
    example = "input x: float[5, 6] y = x -> unit output y"
    module = TorchModule("modgraph.nn.Unit", "position")
    keeps_zeros = True


class Reduction(AlongAxis):
    """Reduce one axis, padding left out; by default the tokens of [N, D]."""

    axis: int | str = axis_setting(-2)

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        (bound,), position = known, signature.axes["position"]
        return None if bound is None or bound.place == position else (self._any(), self._bound(bound, signature))

    def _any(self) -> Op:
        """The reduction of ones and zeros that is zero only where all of them are."""
        return self

    def _bound(self, bound: Bound, signature: Signature) -> Bound:
        """The bound of the places that are not zero somewhere along the reduced axis."""
        found, reduced = move_bound(bound, drop_axis(signature.axes["position"])), signature.operands[0]
        size = reduced.shape[signature.axes["position"]].size
        if found.place is None or found.k is None or size is None:
            return ANYWHERE if found.place is None else Bound(found.place)
        return Bound(found.place, found.k * size)

    def result(self, x: TensorType, position: int) -> TensorType:
        at = len(x.shape) + position
        return x.with_shape((*x.shape[:at], *x.shape[at + 1 :]))


class Mean(Reduction):
    """The mean over an axis; of nothing, zero."""

    name = "mean"
    synonyms = ("average", "avg")
    example = "input x: float[5, 6] y = x -> mean output y"
    module = TorchModule("modgraph.nn.Mean", "position")
    affine = True


class Sum(Reduction):
    """The sum over an axis."""

    name = "sum"
    synonyms = ("reduce_sum",)
    example = "input x: float[5, 6] y = x -> sum output y"
    module = TorchModule("modgraph.nn.Sum", "position")
    affine = True


class Max(Reduction):
    """The largest value along an axis; of nothing, zero."""

    name = "max"
    synonyms = ("amax", "reduce_max")
    example = "input x: float[5, 6] y = x -> max output y"
    module = TorchModule("modgraph.nn.Max", "position")

    def bind(self, *found: TensorType, **known: Any) -> Signature:
        if len(found) == 2:
            of_two = "minimum" if self.name == "min" else "maximum"
            raise Misfit("it takes one value, along an axis", f"the {self.name} of two: (a, b) -> {of_two}")
        return super().bind(*found, **known)


class Min(Max):
    """The least value along an axis; of nothing, zero."""

    name = "min"
    synonyms = ("amin", "reduce_min")
    example = "input x: float[5, 6] y = x -> min output y"
    module = TorchModule("modgraph.nn.Min", "position")

    def _any(self) -> Op:
        return Max(axis=self.axis)


class Last(Reduction):
    """The last value along an axis, padding left out: of a sequence of states, the final one; of nothing, zero."""

    name = "last"
    example = "input x: float[5, 6] y = x -> last output y"
    module = TorchModule("modgraph.nn.Last", "position")
    affine = True

    def _bound(self, bound: Bound, signature: Signature) -> Bound:
        return move_bound(bound, drop_axis(signature.axes["position"]))
