"""Ops that permute, merge, split and add axes."""

from __future__ import annotations

from math import prod

from modgraph.declare import Operand, Signature, axis_setting, own_module, position_of, positions_of, setting
from modgraph.declare.indexing import Indexing, Reading, Use, join_indices, move_axes, read_repeated, split_index
from modgraph.ops.op import Op
from modgraph.ops.shape import axis_called
from modgraph.ops.zeros import ANYWHERE, Bound, Bounds, Propagated, move_bound, moves
from modgraph.types import Axes, Axis, Misfit, Shape, TensorType, format_shape, replace_axes

PLACE = "place of the new axis in the result, counted from the last; the first if not given"
LISTED = "axes, by name or counted from the last: -1, -2, …; the last two if none are given"


class _OfAxes(Op):
    """Base of ops on several axes, which are positional arguments."""

    affine = True
    takes_ids = True

    axes: tuple[str | int, ...] = setting((), max=-1, axis=True, doc=LISTED)

    def places(self, x: TensorType, otherwise: tuple[int, int]) -> list[int]:
        """The places of the given axes, counted from the last. Raises `Misfit`."""
        given, who = self.axes or otherwise, self.name
        if len(given) < 2:
            raise Misfit("it takes two axes or more", f'for example: {who}(-2, -1), or by name, {who}("time", -1)')
        return positions_of(given, x, who)


class Transpose(_OfAxes, name="transpose", synonyms="permute swapaxes swap_axes moveaxis movedim"):
    """Permute axes into the given order: `transpose("expert", "time")`, `transpose(-1, -2)`.

    The given axes share their old places, the first one outermost; all others stay. By default the last two swap.
    """

    module = own_module("order")
    propagate = moves(lambda axes, place: axes["order"].index(place) - len(axes["order"]))

    def indexing(self, use: Use) -> Indexing:
        order = use.signature.axes["order"]
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: order.index(axis) - len(order))),),)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        given = self.places(x, (-1, -2))
        order = [*range(-len(x.shape), 0)]
        for place, at in zip(sorted(given), given, strict=True):
            order[place] = at
        axes.bound["order"] = tuple(order)
        return (x.with_shape([x.shape[at] for at in order]),)


def _explain_order(shape: Shape, given: list[int]) -> str:
    """Explain how axes come to stand side by side; an axis between them may be one of them under another name."""
    between = [at for at in range(min(given), max(given)) if at not in given]
    words = (f'"{shape[at].name}"' if shape[at].name else str(at) for at in (*between, *given))
    order = f"order the axes first: -> transpose({', '.join(words)})"
    pairs = ((shape[at], shape[to]) for at in between for to in given if shape[at].name and shape[to].name)
    for one, other in pairs:
        if one.size == other.size:
            return f'if these are one: -> rename({one.name}="{other.name}") before they meet; else {order}'
    return order


class Merge(_OfAxes, name="merge", synonyms="flatten_axes collapse combine_axes"):
    """Merge neighbouring axes into one, in row-major order: `merge("expert", "slot", into="row")`.

    By default it merges the last two axes. Without a name the new axis is unnamed.
    """

    example = 'input x: float[4, 5, 6] y = x -> merge(-3, -2, into="row") output y'
    module = own_module("first", "last")

    into: str = setting("", axis=True, doc="name of the new axis")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        given = self.places(x, (-2, -1))
        first, last = given[0], given[-1]
        if given != [*range(first, last + 1)]:
            names = ", ".join(str(x.shape[at]) for at in given)
            reason = f"{names} do not stand side by side in {format_shape(x.shape)}"
            raise Misfit(reason, _explain_order(x.shape, given))
        axes.bound["first"], axes.bound["last"] = first, last
        new = axis_called(prod(require_fixed_length(x.shape[at]) for at in given), self.into)
        return (replace_axes(x, first, [new], len(given)),)

    def indexing(self, use: Use) -> Indexing:
        (shape,), first, last = use.shapes, use.signature.axes["first"], use.signature.axes["last"]
        parts = split_index(last, tuple(shape[axis].size or 1 for axis in range(first, last + 1)))
        merged = dict(zip(range(first, last + 1), parts, strict=True))
        return ((Reading(0, move_axes(shape, lambda axis: axis + (axis < first) * (last - first), merged)),),)

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        (bound,), first, last = known, signature.axes["first"], signature.axes["last"]
        if bound is None or bound.place is None:
            return self, ANYWHERE
        if not first <= bound.place <= last:
            return self, move_bound(bound, lambda place: place if place > last else place + last - first)
        shape = signature.operands[0].shape
        others = prod(shape[at].size or 1 for at in range(first, last + 1) if at != bound.place)
        return self, Bound(last, None if bound.k is None else bound.k * others)


class Unmerge(Op, name="unmerge", synonyms="unflatten split_axis unflatten_axes"):
    """Split an axis into several: `unmerge([4, 8], into=["head", ""])`. The last of them is innermost."""

    example = 'input x: float[5, 6] y = x -> unmerge([2, 3], into=["head", ""]) output y'
    module = own_module("position", "sizes")
    along = True
    affine = True
    takes_ids = True
    propagate = moves(lambda axes, place: place - (len(axes["sizes"]) - 1) * (place < axes["position"]))

    sizes: tuple[int, ...] = setting(min=1, doc="lengths of the new axes; their product is the length of the old one")
    axis: int | str = axis_setting(-1)
    into: tuple[str, ...] = setting((), axis=True, doc='names of the new axes; "" for an unnamed one')

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if not self.sizes:
            raise Misfit("it takes the lengths of the new axes", "for example: unmerge([4, 8])")
        names = self.into or ("",) * len(self.sizes)
        if len(names) != len(self.sizes):
            advice = 'a plain one is called "": into=["a", ""]'
            raise Misfit(f"{len(self.sizes)} axes have {len(names)} names", advice)
        length = require_fixed_length(found[0].shape[axes["position"]])
        if prod(self.sizes) != length:
            raise Misfit(f"{' · '.join(map(str, self.sizes))} is {prod(self.sizes)}, and the axis has {length}", "")
        return (replace_axes(found[0], axes["position"], [*map(axis_called, self.sizes, names)]),)

    def indexing(self, use: Use) -> Indexing:
        position, count = use.signature.axes["position"], len(self.sizes)
        parts = join_indices(range(position - count + 1, position + 1), self.sizes)
        places = move_axes(use.shapes[0], lambda axis: axis - (axis < position) * (count - 1), {position: parts})
        return ((Reading(0, places),),)


class _Repeated(Op):
    """Base of ops that repeat a value along a new axis, at its `place` in the result."""

    indexing = read_repeated
    takes_ids = True
    propagate = moves(lambda axes, place: place - (place <= axes["place"]))

    def repeat(self, x: TensorType, axis: Axis, at: int | None, axes: Axes) -> TensorType:
        """Add the new axis to the operand's type. Raises `Misfit`."""
        rank = len(x.shape) + 1
        axes.bound["place"] = place = -rank if at is None else at
        if place < -rank:
            raise Misfit(f"there is no place {place} among {rank} axes", f"the first is at={-rank}")
        return replace_axes(x, place + 1, [axis], 0)


class NewAxis(_Repeated, name="new_axis"):
    """Repeat a value along a new axis: `new_axis(3, axis="sender")`, or along the modules of a pool:
    `new_axis(expert)`.

    The new axis is the first one unless `at` gives another place. Without a name it is unnamed.
    """

    example = 'input x: float[5, 6] y = x -> new_axis(3, axis="copy", at=-2) output y'
    module = own_module("place", "length")
    affine = True

    length: int = setting(1, min=1, extent="axis", doc="length of the axis; a pool or a named axis gives its own")
    axis: str = setting("", axis=True, doc="name of the axis")
    at: int | None = setting(None, max=-1, doc=PLACE)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (self.repeat(found[0], axis_called(self.length, self.axis), self.at, axes),)


class Expand(_Repeated, name="expand", synonyms="expand_as broadcast_like"):
    """Repeat a value along an axis of another value, even one of variable length: `(gates, x) -> expand("time")`.

    The new axis is the first one unless `at` gives another place.
    """

    nondifferentiable = ("like",)
    example = "input x: float[5, 6] input y: float[6] z = (y, x) -> expand(-2) output z"
    operands = (Operand("x", "..."), Operand("like", "..."))
    module = own_module("place", "position")
    taken_as_is = (1,)

    axis: int | str = setting(max=-1, axis=True, doc="the axis of the other value, by name or counted from the last")
    at: int | None = setting(None, max=-1, doc=PLACE)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != 2 or any(type_.dtype == "length" for type_ in found):
            raise Misfit("it takes two float values, or ids", 'write (value, like) -> expand("time")')
        x, like = found
        axes.bound["position"] = position = position_of(self.axis, like, self.name)
        if like.shape[position].is_padded and x.per == "batch":
            raise Misfit("a value over the batch has no axis along which examples differ in their length", "", 0)
        return (self.repeat(x, like.shape[position], self.at, axes),)


def require_fixed_length(axis: Axis) -> int:
    """Return the length of an axis. Raises `Misfit` for an axis of variable length."""
    if axis.size is None:
        reason = f'the axis "{axis}" has no fixed length, and its padding would be forgotten'
        raise Misfit(reason, "reduce it, or give it a number in the input's type")
    return axis.size
