"""Ops of the incremental form, in which a model takes the tokens that follow those it has seen."""

from __future__ import annotations

from typing import ClassVar

from modgraph.declare import Operand, Signature, axis_setting, own_module, position_of, setting
from modgraph.declare.indexing import Indexing, Place, Reading, Use, everywhere, move_axes, place_at
from modgraph.ops.along_axis import AlongAxis
from modgraph.types import Axes, Axis, Misfit, TensorType, meet_shapes, replace_axes, shapes_meet

JOINED = (Operand("joined", "...", dtype="any"), Operand("x", "...", dtype="any"))
EXAMPLE = "input x: float[5, 6] z = (x, x) -> append(axis=-2) "


class _OfTokens(AlongAxis):
    """Base of ops on values along an axis of tokens, at one place in all operands; the first `read` are read."""

    torch_arguments = ""
    masks = ""
    affine = True
    takes_ids = True
    read: ClassVar[int] = 1

    axis: int | str = axis_setting(-2)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        names = [each.name for each in self.operands]
        if len(found) != len(names):
            raise Misfit(f"it takes {len(names)} operands ({', '.join(names)}), not {len(found)}")
        axes.bound["position"] = position = position_of(self.axis, found[-1], self.name)
        for each in found:
            position_of(position, each, self.name)  # each operand has it
        return self.infer(axes, found)

    def read_along(self, use: Use, axis: Axis) -> Place:
        """The places along the axis that an entry reads of an operand."""
        return everywhere(axis)

    def indexing(self, use: Use) -> Indexing:
        position = use.signature.axes["position"]
        along = ({position: self.read_along(use, shape[position])} for shape in use.shapes)
        readings = zip(range(self.read), use.shapes, along, strict=False)
        return (tuple(Reading(at, move_axes(shape, lambda axis: axis, each)) for at, shape, each in readings),)


class Append(_OfTokens, name="append"):
    """Append the tokens of each example to those before them, without gaps for padding.

    The joined axis is called `into`. The lengths of examples along it are those of the axis `of`.
    """

    example = "input x: float[5, 6] y = (x, x) -> append(into='twice') output y".replace("'", '"')
    operands = (Operand("before", "...", dtype="any"), Operand("x", "...", dtype="any"))
    masks_each = True
    read = 2

    into: str = setting("joined", axis=True, doc="name of the joined axis")
    of: str = setting("", axis=True, doc="name of the axis whose lengths examples have along the joined one")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        before, x = found
        position = axes["position"]
        others = [replace_axes(each, position).shape for each in found]
        if (before.dtype, before.size) != (x.dtype, x.size) or not shapes_meet(*others):
            raise Misfit(f"cannot append {x} to {before} along {self.axis}", "make all other axes equal", 1)
        kept, parts = meet_shapes(*others), [each.shape[position].size for each in found]
        size = None if None in parts else sum(filter(None, parts))
        require_name(self.into, size)
        joined, at = Axis(size, self.into, self.of if size is None and self.of != self.into else ""), position + 1
        return (x.with_shape((*kept[: len(kept) + at], joined, *kept[len(kept) + at :])),)

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return tuple(type_.shape[signature.axes["position"]] for type_ in signature.operands)


class Tail(_OfTokens, name="tail"):
    """The last places along an axis to which tokens x were appended: theirs."""

    nondifferentiable = ("x",)
    example = f"{EXAMPLE}y = (z, x) -> tail output y"
    operands = JOINED

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (replace_axes(found[0], axes["position"], [found[1].shape[axes["position"]]]),)

    def read_along(self, use: Use, axis: Axis) -> Place:
        position = use.signature.axes["position"]
        sizes = [shape[position].size for shape in use.shapes]
        ahead = None if None in sizes else (sizes[0] or 0) - (sizes[1] or 0)
        return everywhere(axis) if ahead is None else place_at(position, ahead, ahead)


class Recent(_OfTokens, name="recent"):
    """The last places of an axis that begins with `count` places before the tokens x of each example.

    The result has this many places, whatever the padding of x.
    """

    nondifferentiable = ("x",)
    example = f"{EXAMPLE}y = (z, x) -> recent(5) output y"
    module = own_module("position", "count")
    operands = JOINED
    masks_each = True

    count: int = setting(min=1, doc="number of places")
    axis: int | str = axis_setting(-2)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (replace_axes(found[0], axes["position"], [self.count]),)

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return (signature.operands[1].shape[signature.axes["position"]],)


class Retain(_OfTokens, name="retain"):
    """Retain the `first` and the `last` tokens of each example, all tokens of an example that has no more.

    The axis of tokens is called `into`, and has any length up to the sum of both.
    """

    example = "input x: float[7, 6] y = x -> retain(first=2, last=3, into='kept') output y".replace("'", '"')
    module = own_module("position", "first", "last")
    operands = (Operand("joined", "...", dtype="any"),)
    masks = "position"

    first: int = setting(0, min=0, doc="number of first tokens")
    last: int = setting(1, min=1, doc="number of last tokens")
    axis: int | str = axis_setting(-2)
    into: str = setting("retained", axis=True, doc="name of the axis")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        size, most = found[0].shape[axes["position"]].size, self.first + self.last
        require_name(self.into, size)
        return (replace_axes(found[0], axes["position"], [Axis(None if size is None else min(size, most), self.into)]),)


def require_name(name: str, size: int | None) -> None:
    """Require a name for an axis of any length. Raises `Misfit`."""
    if size is None and not name:
        raise Misfit("an axis of any length needs a name", 'for example: into="joined"')
