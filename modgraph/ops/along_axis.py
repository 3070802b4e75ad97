"""Ops along one axis, which is given by its name or counted from the last: reductions and softmax."""

from __future__ import annotations

from modgraph.declare import Signature, axis_setting, own_module
from modgraph.ops.op import Op
from modgraph.ops.zeros import Bound, Bounds, Propagated, drop_axis
from modgraph.types import Axes, Misfit, TensorType, replaced


class AlongAxis(Op):
    """Works along one axis, padding left out."""

    module = own_module("position")
    masks = "position"
    along = True

    axis: int | str = axis_setting(-1)


class Softmax(AlongAxis, name="softmax"):
    """exp(x) / Σ exp(x) along an axis; zero in padding."""

    takes_logits = "x"


class LogSoftmax(AlongAxis, name="log_softmax"):
    """x − log Σ exp(x) along an axis; zero in padding."""

    takes_logits = "x"


class Unit(AlongAxis, name="unit", synonyms="l2_normalize unit_norm normalize normalise"):
    """x / max(‖x‖, 1e-8) along an axis: vectors of length one, so that the contraction of two is their cosine."""

    keeps_zeros = True


class Reduction(AlongAxis):
    """Reduce one axis, padding left out; by default the tokens of [N, D]."""

    axis: int | str = axis_setting(-2)

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        """The bound of the places that are not zero somewhere along the reduced axis."""
        found = drop_axis(self.any_of_choices(), signature, known)
        if found is None:
            return None
        op, bound = found
        size = signature.operands[0].shape[signature.axes["position"]].size
        return op, Bound(bound.place, bound.k and size and bound.k * size)

    def any_of_choices(self) -> Op:
        """The reduction of ones and zeros that is zero only where all of them are."""
        return self

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (replaced(found[0], axes["position"]),)


class Mean(Reduction, name="mean", synonyms="average avg"):
    """The mean over an axis; of nothing, zero."""

    affine = True


class Sum(Reduction, name="sum", synonyms="reduce_sum"):
    """The sum over an axis."""

    affine = True


class Max(Reduction, name="max", synonyms="amax reduce_max"):
    """The largest value along an axis; of nothing, zero."""

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) == 2:
            of_two = "minimum" if self.name == "min" else "maximum"
            raise Misfit("it takes one value, along an axis", f"the {self.name} of two: (a, b) -> {of_two}")
        return super().resolve(axes, found)


class Min(Max, name="min", synonyms="amin reduce_min"):
    """The least value along an axis; of nothing, zero."""

    def any_of_choices(self) -> Op:
        return Max(axis=self.axis)


class Last(Reduction, name="last"):
    """The last value along an axis, padding left out: of a sequence of states, the final one; of nothing, zero."""

    affine = True
    propagate = drop_axis
