"""Ops of the incremental form, in which a model takes the tokens that follow those it has seen."""

from __future__ import annotations

from dataclasses import replace

from modgraph.declare import Operand, Signature, axis_setting, own_module, position_of, setting
from modgraph.declare.indexing import Indexing, Reading, Use, everywhere, move_axes, place_at
from modgraph.ops.along_axis import AlongAxis
from modgraph.types import Axes, Axis, Misfit, TensorType, meet_shapes, replace_axes, shapes_meet

TWO = (Operand("before", "...", dtype="any"), Operand("x", "...", dtype="any"))


class Append(AlongAxis, name="append"):
    """Append the tokens of each example to those before them, without gaps for padding.

    The joined axis is called `into`. The lengths of examples along it are those of the axis `of`.
    """

    torch_arguments = ""
    example = 'input x: float[5, 6] y = (x, x) -> append(axis=-2, into="twice") output y'
    operands = TWO
    masks = ""
    masks_each = True
    affine = True
    takes_ids = True

    axis: int | str = axis_setting(-2)
    into: str = setting("joined", axis=True, doc="name of the joined axis")
    of: str = setting("", axis=True, doc="name of the axis whose lengths examples have along the joined one")

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != 2:
            raise Misfit(f"it takes 2 operands (before, x), not {len(found)}")
        before, x = found
        axes.bound["position"] = position = position_of(self.axis, x, self.name)
        fits = len(before.shape) == len(x.shape) and (before.dtype, before.size) == (x.dtype, x.size)
        if not fits or not shapes_meet(_others(before, position), _others(x, position)):
            raise Misfit(f"cannot append {x} to {before} along {self.axis}", "make all other axes equal", 1)
        kept = meet_shapes(_others(before, position), _others(x, position))
        at, parts = len(kept) + 1 + position, [each.shape[len(kept) + 1 + position].size for each in found]
        size = None if None in parts else sum(filter(None, parts))
        joined = Axis(size, self.into, self.of if size is None and self.of != self.into else "")
        return (x.with_shape((*kept[:at], joined, *kept[at:])),)

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return tuple(type_.shape[signature.axes["position"]] for type_ in signature.operands)

    def indexing(self, use: Use) -> Indexing:
        changed = {use.signature.axes["position"]: everywhere(use.shapes[0][use.signature.axes["position"]])}
        return (
            tuple(Reading(at, move_axes(shape, lambda axis: axis, changed)) for at, shape in enumerate(use.shapes)),
        )


class Tail(AlongAxis, name="tail"):
    """The last places along an axis to which tokens x were appended: theirs."""

    nondifferentiable = ("x",)
    torch_arguments = ""
    example = "input x: float[5, 6] z = (x, x) -> append(axis=-2) y = (z, x) -> tail(axis=-2) output y"
    operands = (Operand("joined", "...", dtype="any"), Operand("x", "...", dtype="any"))
    masks = ""
    affine = True
    takes_ids = True

    axis: int | str = axis_setting(-2)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != 2:
            raise Misfit(f"it takes 2 operands (joined, x), not {len(found)}")
        axes.bound["position"] = position = position_of(self.axis, found[1], self.name)
        return (replace_axes(found[0], position, [found[1].shape[position]]),)

    def indexing(self, use: Use) -> Indexing:
        position = use.signature.axes["position"]
        before, sizes = use.shapes[0], [shape[position].size for shape in use.shapes]
        ahead = None if None in sizes else (sizes[0] or 0) - (sizes[1] or 0)
        moved = {position: everywhere(before[position]) if ahead is None else place_at(position, ahead, ahead)}
        return ((Reading(0, move_axes(before, lambda axis: axis, moved)),),)


class Recent(AlongAxis, name="recent"):
    """The last places of an axis that begins with `count` places before the tokens x of each example.

    The result has this many places, whatever the padding of x.
    """

    nondifferentiable = ("x",)
    torch_arguments = ""
    example = "input x: float[5, 6] z = (x, x) -> append(axis=-2) y = (z, x) -> recent(5, axis=-2) output y"
    module = own_module("position", "count")
    operands = (Operand("joined", "...", dtype="any"), Operand("x", "...", dtype="any"))
    masks = ""
    masks_each = True
    affine = True
    takes_ids = True

    count: int = setting(min=1, doc="number of places")
    axis: int | str = axis_setting(-2)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) != 2:
            raise Misfit(f"it takes 2 operands (joined, x), not {len(found)}")
        axes.bound["position"] = position = position_of(self.axis, found[1], self.name)
        return (replace_axes(replace(found[0]), position, [self.count]),)

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return (signature.operands[1].shape[signature.axes["position"]],)

    def indexing(self, use: Use) -> Indexing:
        changed = {use.signature.axes["position"]: everywhere(use.shapes[0][use.signature.axes["position"]])}
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis, changed)),),)


def _others(type_: TensorType, position: int) -> tuple[Axis, ...]:
    """The axes of a value but one, counted from the last."""
    at = len(type_.shape) + position
    return (*type_.shape[:at], *type_.shape[at + 1 :])
