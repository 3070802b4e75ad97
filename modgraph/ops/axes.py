"""Ops that move, join, cut and add axes."""

from __future__ import annotations

from math import prod
from typing import Any

from modgraph.declare import Operand, Signature, TorchModule, axis_setting, position_of, setting
from modgraph.ops.op import Op
from modgraph.ops.shape import named_axis
from modgraph.ops.zeros import ANYWHERE, Bound, Bounds, move_bound
from modgraph.types import Axes, Axis, Misfit, TensorType, once_each, shown

PLACE = "its place in the result, counted from the last; the first if not given"
LISTED = "axes, by name or counted from the last: -1, -2, …; the last two if none are given"


def _places(axes: tuple[str | int, ...], x: TensorType, who: str) -> list[int]:
    """Where the axes that an op was given stand, counted from the last. Raises `Misfit`."""
    given = axes or (-2, -1)
    if len(given) < 2:
        raise Misfit("it takes two axes or more", f'for example: {who}(-2, -1), or by name, {who}("time", -1)')
    found = [position_of(axis, x, who) for axis in given]
    if len(set(found)) < len(found):
        raise Misfit("an axis is given twice", "give each once")
    return found


class _OfAxes(Op):
    """Base of what works on several axes, which are given one after another."""

    affine = True

    axes: tuple[str | int, ...] = setting((), max=-1, axis=True, doc=LISTED)


class Transpose(_OfAxes):
    """Lay axes in the order in which they are given: `transpose("expert", "time")`, `transpose(-1, -2)`.

    They take the places that they had among them, the first given the outermost; all others stay where they are.
    Without any, the last two change places.
    """

    name = "transpose"
    synonyms = ("permute", "swapaxes", "swap_axes", "moveaxis", "movedim")
    example = "input x: float[5, 6] y = x -> transpose output y"
    module = TorchModule("modgraph.nn.Transpose", "order")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        given = _places(self.axes or (-1, -2), x, self.name)
        order = [*range(-len(x.shape), 0)]
        for place, at in zip(sorted(given), given, strict=True):
            order[place] = at
        axes.bound["order"] = tuple(order)
        return (x.with_shape([x.shape[at] for at in order]),)

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        (bound,), order = known, signature.axes["order"]
        return None if bound is None else (self, move_bound(bound, lambda place: order.index(place) - len(order)))


class Merge(_OfAxes):
    """Make one axis of neighbouring ones, its places in their order: `merge("expert", "slot", into="row")`.

    Without a name it is a plain one. By default of the last two.
    """

    name = "merge"
    synonyms = ("flatten_axes", "collapse", "combine_axes")
    example = 'input x: float[4, 5, 6] y = x -> merge(-3, -2, into="row") output y'
    module = TorchModule("modgraph.nn.Merge", "first", "last")

    into: str = setting("", axis=True, doc="what the axis is called")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        given = _places(self.axes, x, self.name)
        first, last, rank = given[0], given[-1], len(x.shape)
        if given != [*range(first, last + 1)]:
            names = ", ".join(str(x.shape[at]) for at in given)
            raise Misfit(f"{names} do not stand side by side in {shown(x.shape)}", "lay them so first: -> transpose(…)")
        merged = x.shape[first + rank : last + rank + 1]
        new = axis_called(prod(fixed_length(axis) for axis in merged), self.into)
        axes.bound["first"], axes.bound["last"] = first, last
        return (x.with_shape(once_each((*x.shape[: first + rank], new, *x.shape[last + rank + 1 :]))),)

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        (bound,), first, last = known, signature.axes["first"], signature.axes["last"]
        if bound is None or bound.place is None:
            return None if bound is None else (self, ANYWHERE)
        if not first <= bound.place <= last:
            return self, move_bound(bound, lambda place: place if place > last else place + last - first)
        sizes = (axis.size or 1 for axis in signature.operands[0].shape[len(signature.operands[0].shape) + first :])
        others = prod(size for at, size in enumerate(sizes, start=first) if at <= last and at != bound.place)
        return self, Bound(last, None if bound.k is None else bound.k * others)


class Unmerge(Op):
    """Make several axes of one: `unmerge([4, 8], into=["head", ""])`, the last of them the innermost."""

    name = "unmerge"
    synonyms = ("unflatten", "split_axis", "unflatten_axes")
    example = 'input x: float[5, 6] y = x -> unmerge([2, 3], into=["head", ""]) output y'
    module = TorchModule("modgraph.nn.Unmerge", "position", "sizes")
    affine = True

    sizes: tuple[int, ...] = setting(min=1, doc="the lengths of the new axes, whose product is that of the old")
    axis: int | str = axis_setting(-1)
    into: tuple[str, ...] = setting((), axis=True, doc='what they are called, "" a plain one')

    def check(self, axes: Axes) -> None:
        if not self.sizes:
            raise Misfit("it takes the lengths of the new axes", "for example: unmerge([4, 8])")
        if self.into and len(self.into) != len(self.sizes):
            raise Misfit(
                f"{len(self.sizes)} axes have {len(self.into)} names", 'a plain one is called "": into=["a", ""]'
            )

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        position = position_of(self.axis, x, self.name)
        at, length = position + len(x.shape), fixed_length(x.shape[position])
        if prod(self.sizes) != length:
            raise Misfit(f"{' · '.join(map(str, self.sizes))} is {prod(self.sizes)}, and the axis has {length}", "")
        names = self.into or ("",) * len(self.sizes)
        new = [axis_called(size, name) for size, name in zip(self.sizes, names, strict=True)]
        axes.bound["position"] = position
        return (x.with_shape(once_each((*x.shape[:at], *new, *x.shape[at + 1 :]))),)

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        (bound,), position, new = known, signature.axes["position"], len(self.sizes) - 1
        return None if bound is None else (self, move_bound(bound, lambda place: place - new * (place < position)))


class NewAxis(Op):
    """Repeat a value along a new axis: `new_axis(3, axis="sender")`, or along that of a pool's modules,
    `new_axis(expert)`. It stands before all others, or where `at` says; without a name it is a plain one."""

    name = "new_axis"
    example = 'input x: float[5, 6] y = x -> new_axis(3, axis="copy", at=-2) output y'
    module = TorchModule("modgraph.nn.NewAxis", "place", "length")
    affine = True

    length: int = setting(1, min=1, extent="axis", doc="how long it is; of a pool or a named axis, its own")
    axis: str = setting("", axis=True, doc="what it is called")
    at: int | None = setting(None, max=-1, doc=PLACE)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        axes.bound["place"] = _place(self.at, len(x.shape) + 1)
        return (_with_axis(x, axis_called(self.length, self.axis), axes["place"]),)

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        return _repeated(self, signature, known)


class Expand(Op):
    """Repeat a value along an axis that another has, of any length too: `(gates, x) -> expand("time")`.

    The axis stands before all others, or where `at` says.
    """

    name = "expand"
    synonyms = ("expand_as", "broadcast_like")
    nondifferentiable = ("like",)
    example = "input x: float[5, 6] input y: float[6] z = (y, x) -> expand(-2) output z"
    operands = (Operand("x", "..."), Operand("like", "..."))
    module = TorchModule("modgraph.nn.Expand", "place", "position")
    taken_as_is = (1,)

    axis: int | str = setting(max=-1, axis=True, doc="which of the other's axes, by name or counted from the last")
    at: int | None = setting(None, max=-1, doc=PLACE)

    def bind(self, *found: TensorType, **known: Any) -> Signature:
        if len(found) != 2 or any(type_.dtype != "float" for type_ in found):
            raise Misfit("it takes two float values", 'write (value, like) -> expand("time")')
        x, like = found
        axes = Axes(self)
        axes.bound["position"] = position = position_of(self.axis, like, self.name)
        if like.shape[position].is_padded and x.per == "batch":
            raise Misfit("a value over the batch has no axis along which examples differ in their length", "", 0)
        axes.bound["place"] = place = _place(self.at, len(x.shape) + 1)
        return Signature(self, found, axes, (_with_axis(x, like.shape[position], place),))

    def propagate_choices(self, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
        return _repeated(self, signature, known)


def _repeated(op: Op, signature: Signature, known: Bounds) -> tuple[Op, Bound] | None:
    """The op itself and the bound of a choice repeated along a new axis."""
    bound, new = known[0], signature.axes["place"]
    return None if bound is None else (op, move_bound(bound, lambda place: place - (place <= new)))


def _place(at: int | None, rank: int) -> int:
    """The place of a new axis among so many, counted from the last. Raises `Misfit`."""
    place = -rank if at is None else at
    if place < -rank:
        raise Misfit(f"there is no place {place} among {rank} axes", f"the first is at={-rank}")
    return place


def _with_axis(x: TensorType, axis: Axis, place: int) -> TensorType:
    """A value with one more axis, at a place of the result that is counted from the last. Raises `Misfit`."""
    at = place + len(x.shape) + 1
    return x.with_shape(once_each((*x.shape[:at], axis, *x.shape[at:])))


def axis_called(size: int, name: str) -> Axis:
    """A new axis, a plain one without a name. Raises `Misfit` for what is no name."""
    return named_axis(size, name) if name else Axis(size)


def fixed_length(axis: Axis) -> Any:
    """How long an axis is. Raises `Misfit` for one of any length."""
    if axis.size is None:
        reason = f'the axis "{axis}" has no fixed length, and its padding would be forgotten'
        raise Misfit(reason, "reduce it, or give it a number in the input's type")
    return axis.size
