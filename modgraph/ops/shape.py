"""Ops that flatten, concatenate, stack, split and rename axes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from modgraph.declare import (
    Signature,
    TorchModule,
    axis_setting,
    check_one_kind,
    join_ids,
    own_module,
    position_of,
    product,
    setting,
)
from modgraph.declare.indexing import Indexing, Reading, Use, move_axes, place_at, read_pointwise, split_index
from modgraph.ops.op import Op
from modgraph.ops.zeros import Bound, Bounds, Propagated, either_bound, join_bounds, keep_bound, lose_bound
from modgraph.types import (
    Axes,
    Axis,
    Misfit,
    Shape,
    TensorType,
    format_shape,
    is_path,
    meet_shapes,
    replace_axes,
    require_distinct,
    shapes_meet,
)

MOST_PARTS = 256
NAMES = 'axes and their new names, as in rename(expert="sender"), or for a plain axis rename(["-2", "token"])'
PLACE = re.compile(r"-[1-9]\d*")  # of an axis, counted from the last


class Flatten(Op, name="flatten", synonyms="ravel"):
    """Merge all axes of an example, or its last ones, into one: `flatten(3)` flattens images to vectors."""

    module = own_module("flat")
    affine = True
    propagate = lose_bound

    axes: int | None = setting(None, min=1, doc="number of axes to merge, from the last; all if not given")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        rank = len(found[0].shape)
        axes.bound["flat"] = count = rank if self.axes is None else self.axes
        if count > rank:
            raise Misfit(f"there are {rank} axes, and it joins {count}", f"at most: flatten({rank})")
        outer, joined = found[0].shape[: rank - count], found[0].shape[rank - count :]
        padded = next((axis for axis in joined if axis.is_padded), None)
        if padded is not None:
            reason = f'it needs fixed lengths, and "{padded}" has none'
            raise Misfit(reason, f'reduce it first: -> mean(axis="{padded}")')
        return (found[0].with_shape((*outer, product(joined))),)

    def indexing(self, use: Use) -> Indexing:
        (shape,), count = use.shapes, use.signature.axes["flat"]
        parts = split_index(-1, tuple(axis.size or 1 for axis in shape[len(shape) - count :]))
        flat = dict(zip(range(-count, 0), parts, strict=True))
        return ((Reading(0, move_axes(shape, lambda axis: axis + count - 1, flat)),),)


class Concat(Op, name="concat", synonyms="cat concatenate join"):
    """Concatenate values along an axis, the last one by default; all other axes are equal.

    The joined axis has no name. Given by name, it must stand at the same place in all values.
    """

    example = "input x: float[5, 6] y = (x, x) -> concat(axis=-2) output y"
    variadic = True
    affine = True
    module = own_module("position")

    axis: int | str = axis_setting(-1)

    @property
    def message_rank(self) -> int | None:
        return -self.axis if isinstance(self.axis, int) and self.axis < -1 else None

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if not found or any(type_.dtype == "length" for type_ in found):
            raise Misfit("it joins values", "write (a, b) -> concat")
        check_one_kind(found)
        single = next((place for place, each in enumerate(found) if not each.shape), None)
        if single is not None:
            raise Misfit(f"operand {single + 1} is a single number, without an axis to join along", "", single)
        axes.bound["position"] = position = position_of(self.axis, found[0], self.name)
        axis, others, total = _describe_axis(self.axis), omit_axis(found[0].shape, position), 0
        for at, type_ in enumerate(found):
            if position_of(self.axis, type_, self.name) != position or not shapes_meet(
                omit_axis(type_.shape, position), others
            ):
                shapes = f"{format_shape(found[0].shape)} and {format_shape(type_.shape)}"
                raise Misfit(f"cannot join {shapes} along {axis}, since other axes differ", "", at)
            others, joined = meet_shapes(others, omit_axis(type_.shape, position)), type_.shape[position]
            if joined.size is None:
                raise Misfit(f'cannot join along the axis "{joined}", which has no fixed length', "", at)
            total += joined.size
        place = len(others) + 1 + position
        return (join_ids(found[0].with_shape((*others[:place], total, *others[place:])), found),)

    def indexing(self, use: Use) -> Indexing:
        readings, before, position = list[Reading](), 0, use.signature.axes["position"]
        for number, shape in enumerate(use.shapes):
            joined = {position: place_at(position, -before, -before)}
            readings.append(Reading(number, move_axes(shape, lambda axis: axis, joined)))
            before += shape[position].size or 0
        return (tuple(readings),)

    def propagate(self, signature: Signature, known: Bounds) -> Propagated:
        position = signature.axes["position"]
        if all(bound is None or bound.place == position for bound in known):
            whole = (Bound(position, type_.shape[position].size) for type_ in signature.operands)
            return self, either_bound(tuple(bound or all_ for bound, all_ in zip(known, whole, strict=True)), sum)
        return self, either_bound(known)


def omit_axis(shape: Shape, position: int) -> Shape:
    """Return a shape without the axis at a position, counted from the last."""
    at = len(shape) + position
    return shape[:at] + shape[at + 1 :]


def _describe_axis(axis: int | str) -> str:
    """Name the axis of a setting in a message."""
    return f'the axis "{axis}"' if isinstance(axis, str) else "the last axis" if axis == -1 else f"the axis {axis}"


class Stack(Op, name="stack", synonyms="pile"):
    """Stack values of one type along a new first axis; the axis of a family's members has the family's name."""

    example = "input x: float[5, 6] y = (x, x) -> stack output y"
    variadic = True
    module = own_module("rank")
    one_kind = True
    indexing = read_pointwise
    takes_ids = True
    propagate = join_bounds

    axis: str = setting("", axis=True, doc="name of the new axis")

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        shape = require_distinct((axis_called(len(found), self.axis), *(axes.lead or ())))
        return (join_ids(found[0].with_shape(shape), found),)


class Split(Op, name="split", synonyms="chunk"):
    """Split an axis, the last one by default, into equal parts, or into parts of given lengths: `a, b = x -> split(2)`,
    `a, b = x -> split([16, 48])`, `a, b = x -> split(2, axis=-2)`."""

    example = "input x: float[5, 6] y, z = x -> split([2, 3], axis=-2) output y output z"
    module = own_module("lengths", "position")
    affine = True
    takes_ids = True
    propagate = keep_bound
    along = True

    parts: int | tuple[int, ...] = setting(min=1, doc="number of parts, or the length of each")
    axis: int | str = axis_setting(-1)

    @property
    def message_rank(self) -> int | None:
        return -self.axis if isinstance(self.axis, int) else None

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        length = found[0].shape[axes["position"]].size
        if length is None:
            reason = f'axis "{found[0].shape[axes["position"]]}" has no fixed length, and split needs one'
            raise Misfit(reason, "give the axis a number in the input's type")
        count = self.parts if isinstance(self.parts, int) else len(self.parts)
        if not 2 <= count <= MOST_PARTS:
            raise Misfit(f"it cuts into 2 parts to {MOST_PARTS}, not {count}", "for example: split(2), split([2, 4])")
        if isinstance(self.parts, int) and length % count:
            advice = f"choose parts that do, or say how long each is: split([{length - 1}, 1])"
            raise Misfit(f"{count} parts do not divide an axis of {length}", advice)
        lengths = (length // count,) * count if isinstance(self.parts, int) else self.parts
        if sum(lengths) != length:
            raise Misfit(f"{' + '.join(map(str, lengths))} is {sum(lengths)}, and the axis has {length}")
        axes.bound["lengths"] = lengths
        return tuple(replace_axes(found[0], axes["position"], (part,)) for part in lengths)

    def indexing(self, use: Use) -> Indexing:
        parts, before, position = list[tuple[Reading, ...]](), 0, use.signature.axes["position"]
        for length in use.signature.axes["lengths"]:
            cut = {position: place_at(position, before, before)}
            parts.append((Reading(0, move_axes(use.shapes[0], lambda axis: axis, cut)),))
            before += length
        return tuple(parts)


class Rename(Op, name="rename"):
    """Give axes other names: `h -> rename(expert="sender")`, for example to combine all pairs of two experts.

    An axis of any length is read a second time, `keys = x -> rename(time="key")`: `key` has the lengths and the padding
    of `time`, and `rename(key="time")` gives `time` again. `rename(expert="")` removes the name of an axis with a
    number. A plain axis is counted from the last: `rename(["-2", "token"])` names the last but one.
    """

    example = 'input x: float[6] pool p[3] = linear(4) y = x -> p -> rename(p="sender") output y'
    module = TorchModule("torch.nn.Identity")
    affine = True
    takes_ids = True
    takes_names = True
    propagate = keep_bound

    def indexing(self, use: Use) -> Indexing:
        return ((Reading(0, move_axes(use.shapes[0], lambda axis: axis)),),)

    names: tuple[str, ...] = setting((), doc=NAMES)

    def with_axes(self, rename: Callable[[str], str]) -> Rename:
        return Rename(names=tuple(each if not each or PLACE.fullmatch(each) else rename(each) for each in self.names))

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        shape = list(x.shape)
        for old, new in zip(self.names[::2], self.names[1::2], strict=True):
            at = len(shape) + position_of(int(old) if PLACE.fullmatch(old) else old, x, self.name)
            if shape[at].is_padded and not new:
                reason = f'the axis "{old}" has no fixed length, and without a name its padding would be forgotten'
                raise Misfit(reason, f'give it another name: rename({old}="key")')
            shape[at] = shape[at].rename(check_axis_name(new))
        return (x.with_shape(require_distinct(tuple(shape))),)

    def check(self, axes: Axes) -> None:
        if not self.names or len(self.names) % 2:
            raise Misfit(
                "it takes axes and their new names",
                'for example: rename(expert="sender"), or for a plain axis rename(["-2", "token"])',
            )


def axis_called(size: int | None, name: str) -> Axis:
    """Make an axis with a user's name or the path of a pool; unnamed without a name. Raises `Misfit` for an invalid
    name."""
    return Axis(size, check_axis_name(name))


def check_axis_name(name: str) -> str:
    """Return the name of an axis, or nothing. Raises `Misfit` for an invalid name."""
    if name and not is_path(name):
        reason = f"{json.dumps(name, ensure_ascii=False)} is no name of an axis"
        raise Misfit(reason, 'a name is a word, as in axis="task"')
    return name
