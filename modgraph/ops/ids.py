"""Ops that make and divide ids: remainders, bins, one-hot vectors, and the ids of the largest values.

Ids are whole numbers from 0 whose type knows their number: `token[time, 1000]`, `class[10]`.
"""

from __future__ import annotations

from dataclasses import replace

from modgraph.declare import Operand, Signature, axis_setting, own_module, setting
from modgraph.declare.indexing import (
    Indexing,
    Reading,
    Use,
    move_axes,
    read_along,
    read_pointwise,
)
from modgraph.ops.arithmetic import Pairwise, make_module
from modgraph.ops.op import Op
from modgraph.ops.shape import axis_called
from modgraph.ops.zeros import Bound
from modgraph.types import (
    Axes,
    Misfit,
    TensorType,
    replace_axes,
    require_distinct,
)


class _ByConstant(Pairwise):
    """Base of ops on ids and a whole number."""

    operands = (Operand("x", "...", dtype="id"),)
    module = make_module(right="right")

    right: int = setting(min=1, doc="the number to divide by")

    def bound_ids(self, found: tuple[TensorType, ...]) -> int | None:
        if found[0].dtype == "float":
            reason = f'"{self.symbol}" is for ids, and this is {found[0]}'
            raise Misfit(reason, "make ids of it: x -> to_ids(16)", 0)
        return super().bound_ids(found)


class Modulo(_ByConstant, name="modulo", synonyms="mod remainder fmod"):
    """The remainder of ids by a whole number: `words % 8` are ids below 8."""

    symbol = "%"
    example = "input x: token[5, 11] y = x % 4 -> embedding(3) output y"

    def count_ids(self, sizes: tuple[int, ...]) -> int:
        return self.right


class FloorDivide(_ByConstant, name="floor_divide", synonyms="floor_div integer_divide"):
    """The whole quotient of ids by a whole number: `words // 8`."""

    symbol = "//"
    example = "input x: token[5, 11] y = x // 4 -> embedding(3) output y"

    def count_ids(self, sizes: tuple[int, ...]) -> int:
        return (sizes[0] - 1) // self.right + 1


class ToIds(Op, name="to_ids", synonyms="digitize bucketize discretize int long"):
    """Ids of numbers: rounded down, and limited to 0 … size − 1; without gradient.

    A learned bias for distances of −8 to 8: `(bias, distance + 8 -> to_ids(17)) -> lookup`.
    """

    nondifferentiable = ("x",)
    example = "input x: float[5, 6] y = 3 * x -> to_ids(7) -> embedding(3) output y"
    module = own_module("size")
    indexing = read_pointwise

    size: int = setting(min=1, doc="number of ids")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (replace(found[0], dtype="token", size=self.size),)


class OneHot(Op, name="one_hot", synonyms="onehot to_categorical"):
    """One at the place of an id along a new last axis, else zero; without gradient.

    The axis has the classes of a label (`label -> one_hot`), a length (`one_hot(16)`), or the modules of a pool:
    `words % len(expert) -> one_hot(expert)` routes by id. It is a choice of one place. With `missing`, a label may be
    missing, and is zero at all places.
    """

    example = "input x: token[5, 6] y = x -> one_hot output y"
    operands = (Operand("x", "...", dtype="id"),)
    module = own_module("length")

    size: int | None = setting(
        None, min=1, extent="axis", doc="length of the axis; a pool or a named axis gives its own"
    )
    axis: str = setting("", axis=True, doc="name of the axis")
    missing: bool = setting(False, doc="whether labels may be missing; a missing label is negative")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        assert x.size is not None, "ids have a number"
        last = axis_called(self.size or x.size, self.axis or x.of)
        if x.size > (last.size or 0):
            advice = f"divide them: % {last.size}, or give the axis {x.size} places"
            raise Misfit(f"ids below {x.size} have no place along an axis of {last.size}", advice, 0)
        if self.missing and x.dtype != "class":
            raise Misfit(f"only labels may be missing, not {x}", "leave missing out", 0)
        axes.bound["length"] = last.size
        return (TensorType("float", require_distinct((*x.shape, last)), per=x.per),)

    def indexing(self, use: Use) -> Indexing:
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis - 1)),),)

    def choice_bound(self, signature: Signature) -> Bound:
        return Bound(-1, 1)


class TopKIndices(Op, name="top_k_indices", synonyms="arg_top_k top_k_ids argtopk"):
    """The ids of the k largest values along an axis, the largest first; without gradient. Of equal values the first is
    larger.

    They replace the axis: of float[time, 100] they are token[time, k, 100]. `(scores, best) -> lookup(axis=-1)` gives
    the values, `(table, best) -> lookup` rows of an array. `top_k` is the same choice as ones and zeros.
    """

    nondifferentiable = ("x",)
    example = "input x: float[5, 6] best = x -> top_k_indices(2) y = (x, best) -> lookup(axis=-1) output y"
    module = own_module("position", "k")
    along = True
    indexing = read_along()

    k: int = setting(1, min=1, doc="number of places to choose")
    axis: int | str = axis_setting(-1)
    into: str = setting("", axis=True, doc="name of the axis of the k places")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        axis = found[0].shape[axes["position"]]
        if axis.size is None:
            reason = f'examples differ in their length along "{axis}", so there may be no {self.k} places'
            raise Misfit(reason, "choose by ones and zeros: top_k, then dispatch for slots")
        if self.k > axis.size:
            raise Misfit(f"it chooses k={self.k} of {axis}", f"lower k to {axis.size} or less")
        shape = replace_axes(found[0], axes["position"], [axis_called(self.k, self.into)]).shape
        return (TensorType("token", shape, axis.size, found[0].per),)
