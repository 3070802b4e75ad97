"""Ops along one axis that go by places or by order: running sums, ranks, the k-th value, positions."""

from __future__ import annotations

from modgraph.declare import Signature, axis_setting, own_module, setting
from modgraph.ops.activation import Identity
from modgraph.ops.along_axis import AlongAxis, Max, Reduction
from modgraph.ops.arithmetic import Subtract
from modgraph.ops.op import Op
from modgraph.ops.zeros import ANYWHERE, Bound, Bounds, Propagated, Ranking
from modgraph.types import Axes, Misfit, TensorType


class CumulativeSum(AlongAxis, name="cumulative_sum", synonyms="cumsum running_sum prefix_sum"):
    """At each place along an axis the sum up to there, the place itself included; padding adds nothing."""

    affine = True

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        place = None if known[0] is None else known[0].place
        return self, ANYWHERE if place == signature.axes["position"] else Bound(place)


class SortOrder(AlongAxis, name="sort_order", synonyms="rank ranks"):
    """For each place its rank along an axis, from 0, without gradient: of equal values the one that stands first is
    first, and padding comes last. So `x -> sort_order(descending=true) < k` is one for the k largest."""

    nondifferentiable = ("x",)
    example = "input x: float[5, 6] y = x -> sort_order(descending=true) output y"
    module = own_module("position", "descending")

    descending: bool = setting(False, doc="the largest value first")

    def ranked(self, signature: Signature) -> Ranking:
        return Ranking(signature.axes["position"], Identity() if self.descending else Subtract(left=0.0, right=None))


class KthLargest(Reduction, name="kth_largest", synonyms="top_k_value"):
    """The k-th largest value along an axis, padding left out, with a gradient to its place: of equal values the one
    that stands first is larger. Of fewer than k values it is the least, of none zero."""

    example = "input x: float[5, 6] y = x -> kth_largest(2) output y"
    module = own_module("position", "k")

    k: int = setting(min=1, doc="1 for the largest, 2 for the next, …")
    axis: int | str = axis_setting(-1)

    def check(self, axes: Axes) -> None:
        axis = (axes.lead or ())[axes["position"]]
        if not axis.name and axis.size is not None and self.k > axis.size:
            raise Misfit(f"there is no value {self.k} along an axis of {axis.size}", f"the least is k={axis.size}")

    def any_of_choices(self) -> Op:
        return Max(axis=self.axis)


class Positions(AlongAxis, name="positions", synonyms="arange iota position_ids"):
    """0, 1, 2, … along an axis of a value, which is all that the result has; without gradient."""

    nondifferentiable = ("x",)
    example = "input x: float[5, 6] y = x -> positions(axis=-2) output y"
    module = own_module("position", "rank")
    masks = ""

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (found[0].with_shape(found[0].shape[axes["position"] :][:1]),)

    def ranked(self, signature: Signature) -> Ranking:
        return Ranking(-1)
