"""Ops along one axis, given by name or counted from the last: reductions, softmax, cumulative sums, ranks,
positions."""

from __future__ import annotations

from typing import ClassVar

from modgraph.declare import Operand, Signature, axis_setting, own_module, setting
from modgraph.declare.indexing import read_along, read_last, read_nothing, read_reduced
from modgraph.ops.arithmetic import Subtract
from modgraph.ops.elementwise import Identity
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bound, Bounds, Propagated, Ranking, drop_axis
from modgraph.types import Axes, Misfit, TensorType, replace_axes


class AlongAxis(Op):
    """Base of ops along one axis; padding does not count."""

    torch_arguments = "dim=axis"
    module = own_module("position")
    masks = "position"
    along = True
    indexing = read_along()

    axis: int | str = axis_setting(-1)


class Softmax(AlongAxis, name="softmax"):
    """exp(x) / Σ exp(x) along an axis; zero in padding."""

    takes_logits = "x"


class LogSoftmax(AlongAxis, name="log_softmax"):
    """x − log Σ exp(x) along an axis; zero in padding."""

    takes_logits = "x"


class Unit(AlongAxis, name="unit", synonyms="l2_normalize unit_norm normalize normalise"):
    """x / max(‖x‖, 1e-8) along an axis: unit vectors, so that the contraction of two is their cosine."""

    keeps_zeros = True


class Reduction(AlongAxis):
    """Reduces one axis without padding; by default the tokens of [N, D]."""

    takes_one: ClassVar[bool] = False  # the result is one of the values, by their order
    indexing = read_reduced()

    axis: int | str = axis_setting(-2)

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        """The bound of places that are not zero somewhere along the reduced axis."""
        found = drop_axis(Max(axis=self.axis) if self.takes_one else self, signature, known)
        if found is None:
            return None
        op, bound = found
        size = signature.operands[0].shape[signature.axes["position"]].size
        return op, Bound(bound.place, bound.k and size and bound.k * size)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (replace_axes(found[0], axes["position"]),)


class Mean(Reduction, name="mean", synonyms="average avg"):
    """The mean over an axis; zero if it is empty."""

    affine = True


class Sum(Reduction, name="sum", synonyms="reduce_sum"):
    """The sum over an axis."""

    affine = True


class Max(Reduction, name="max", synonyms="amax reduce_max"):
    """The largest value along an axis; zero if it is empty."""

    takes_one = True

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) == 2:
            of_two = "minimum" if self.name == "min" else "maximum"
            raise Misfit("it takes one value, along an axis", f"the {self.name} of two: (a, b) -> {of_two}")
        return super().resolve(axes, found)


class Min(Max, name="min", synonyms="amin reduce_min"):
    """The smallest value along an axis; zero if it is empty."""


class LogSumExp(AlongAxis, name="logsumexp", synonyms="log_sum_exp lse reduce_logsumexp"):
    """log Σ exp(x) along an axis, without overflow; zero if it is empty."""

    indexing = read_reduced()
    infer = Reduction.infer


class Last(Reduction, name="last"):
    """The last value along an axis, without padding, such as the final state of a sequence; zero if it is empty."""

    affine = True
    indexing = read_reduced(lambda op, axis: read_last(axis))
    takes_ids = True
    propagate = drop_axis


class CumulativeSum(AlongAxis, name="cumulative_sum", synonyms="cumsum running_sum prefix_sum"):
    """The sum along an axis up to and including each place; padding adds nothing."""

    affine = True
    indexing = read_along(high=0)

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        place = None if known[0] is None else known[0].place
        return self, ANYWHERE if place == signature.axes["position"] else Bound(place)


class SortOrder(AlongAxis, name="sort_order", synonyms="rank ranks"):
    """The rank of each place along an axis, from 0, without gradient. Of equal values the first ranks first; padding
    comes last.

    `x -> sort_order(descending=true) < k` is one for the k largest.
    """

    nondifferentiable = ("x",)
    example = "input x: float[5, 6] y = x -> sort_order(descending=true) output y"
    module = own_module("position", "descending")

    descending: bool = setting(False, doc="the largest value first")

    def ranking(self, signature: Signature) -> Ranking:
        return Ranking(signature.axes["position"], Identity() if self.descending else Subtract(left=0.0, right=None))


class KthLargest(Reduction, name="kth_largest", synonyms="top_k_value"):
    """The k-th largest value along an axis, without padding.

    The gradient flows to that value. Of equal values the first counts as larger. With fewer than k values, the result
    is the smallest one; with none, zero.
    """

    example = "input x: float[5, 6] y = x -> kth_largest(2) output y"
    module = own_module("position", "k")
    takes_one = True

    k: int = setting(min=1, doc="1 for the largest, 2 for the next, …")
    axis: int | str = axis_setting(-1)

    def check(self, axes: Axes) -> None:
        axis = (axes.lead or ())[axes["position"]]
        if not axis.name and axis.size is not None and self.k > axis.size:
            raise Misfit(f"there is no value {self.k} along an axis of {axis.size}", f"the least is k={axis.size}")


class Positions(AlongAxis, name="positions", synonyms="arange iota position_ids"):
    """0, 1, 2, … along an axis of a value, without gradient; the result has only this axis."""

    nondifferentiable = ("x",)
    example = "input x: float[5, 6] y = x -> positions(axis=-2) output y"
    operands = (Operand("x", "...", dtype="any"),)
    module = own_module("position", "rank")
    masks = ""
    indexing = read_nothing

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (TensorType("float", found[0].shape[axes["position"] :][:1], per=found[0].per),)

    def ranking(self, signature: Signature) -> Ranking:
        return Ranking(-1)
