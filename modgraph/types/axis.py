"""Axes and types of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

DType = Literal["float", "token", "class", "length", "edge"]


@dataclass(frozen=True)
class Axis:
    """A dimension with a name, a size, or both.

    A plain axis has no name, and an axis of any length has no size. The axis of a pool's modules has the path of the
    pool for a name and the number of modules for a size. A second reading of an axis of any length names it in `of`.
    """

    size: int | None
    name: str = ""
    of: str = ""

    def __post_init__(self) -> None:
        assert self.name or self.size is not None, "an axis has a name or a size"
        assert not self.of or (self.size is None and self.name != self.of), "an axis of any length is read again"

    @property
    def is_padded(self) -> bool:
        """Whether examples may differ in length along the axis, so that a batch needs padding."""
        return self.size is None

    @property
    def lengths(self) -> str:
        """The name of the axis whose lengths examples have along this one."""
        return self.of or self.name

    def rename(self, name: str) -> Axis:
        """Name the axis; one of any length is read again, or is the first reading again where that has the name."""
        return Axis(self.size, name, self.lengths if self.size is None and name != self.lengths else "")

    def __str__(self) -> str:
        """Format the axis: `5`, `time`, `experts=3`, `key=time`."""
        if not self.name:
            return str(self.size)
        after = self.of if self.size is None else self.size
        return f"{self.name}={after}" if after else self.name

    def as_json(self) -> Any:
        """Return a number, a name, or an object with a name, and a size or what axis is read again."""
        if not self.name:
            return self.size
        if self.of:
            return {"name": self.name, "of": self.of}
        return self.name if self.size is None else {"name": self.name, "size": self.size}


Shape = tuple[Axis, ...]
ONE = Axis(1)


def shape_of(axes: Sequence[Axis | int]) -> Shape:
    """Turn axes and numbers into a shape; a number is a plain axis."""
    return tuple(Axis(axis) if isinstance(axis, int) else axis for axis in axes)


def format_shape(shape: Shape) -> str:
    """Format a shape: `[5, time]`."""
    return f"[{', '.join(map(str, shape))}]"


def may_meet(left: Axis, right: Axis) -> bool:
    """Whether two axes are equal, or have one size and at least one of them is plain."""
    return left == right or (left.size == right.size and not (left.name and right.name))


def meet_axes(left: Axis, right: Axis) -> Axis:
    """Unify two axes that may meet: a plain axis takes the name of the other."""
    return left if left.name else right


def shapes_meet(left: Shape, right: Shape) -> bool:
    return len(left) == len(right) and all(map(may_meet, left, right))


def count_shared_axes(left: Shape, right: Shape) -> int:
    """Count the first axes that two shapes share."""
    return next(
        (at for at, pair in enumerate(zip(left, right, strict=False)) if not may_meet(*pair)),
        min(len(left), len(right)),
    )


def meet_shapes(left: Shape, right: Shape) -> Shape:
    return tuple(map(meet_axes, left, right))


def find_repeated(shape: Shape) -> Axis | None:
    """Find the first named axis that occurs twice."""
    names = [axis.name for axis in shape if axis.name]
    return next((axis for axis in shape if names.count(axis.name) > 1), None)


@dataclass(frozen=True)
class TensorType:
    """`float[N, D]`, `token[time, vocabulary]`, `class[n]`, `length[time]`, `edge[link, node, node]`.

    `size` is the size of a token's vocabulary or the number of classes. `of` names the axis that a `length` measures,
    or the axis of a label's classes: `class[kind=10]`. `per` distinguishes a value of each example from a value of
    the batch, such as a balance statistic. Edges are pairs of ids, [link, 2]: places along the axes `ends` of their
    source and their target.
    """

    dtype: DType
    shape: Shape = ()
    size: int | None = None
    per: Literal["example", "batch"] = "example"
    of: str = ""
    ends: Shape = ()

    def __str__(self) -> str:
        rest = [str(Axis(self.size, self.of))] if self.size is not None or self.of else []
        inside = [*map(str, self.shape[: -1 if self.ends else None]), *map(str, self.ends), *rest]
        axes = f"[{', '.join(inside)}]" if inside else ""
        return f"{self.dtype}{axes}{' over batch' if self.per == 'batch' else ''}"

    @property
    def padded(self) -> tuple[str, ...]:
        """The names of the axes of any length whose lengths examples have, each once."""
        return tuple(dict.fromkeys(axis.lengths for axis in self.shape if axis.is_padded))

    @property
    def classes(self) -> Axis | None:
        """The axis of a label's classes; None for other types."""
        return Axis(self.size, self.of) if self.dtype == "class" else None

    @property
    def dimensions(self) -> tuple[int | str, ...]:
        """The sizes of the axes; for axes of any length the names of their lengths."""
        return _list_dimensions(self.shape)

    @property
    def has_padded_ends(self) -> bool:
        """Whether edges join axes of any length."""
        return any(axis.is_padded for axis in self.ends)

    @property
    def end_dimensions(self) -> tuple[int | str, ...]:
        """The sizes of the axes at the ends of edges; for axes of any length the names of their lengths."""
        return _list_dimensions(self.ends)

    def with_shape(self, shape: Sequence[Axis | int]) -> TensorType:
        return TensorType(self.dtype, shape_of(shape), self.size, self.per, self.of, self.ends)

    def position(self, name: str) -> int | None:
        """Find the position of an axis by name, from 0; None if there is none."""
        return next((at for at, axis in enumerate(self.shape) if axis.name == name), None)

    def find_length(self, name: str) -> int | None:
        """Find the position of the first axis along which examples have the lengths of the axis `name`; None if there
        is none."""
        return next((at for at, axis in enumerate(self.shape) if axis.is_padded and axis.lengths == name), None)

    def meets(self, other: TensorType) -> bool:
        """Whether a value of one type may take the place of the other."""
        if self.classes is not None and other.classes is not None and may_meet(self.classes, other.classes):
            other = replace(other, of=self.of)
        return replace(self, shape=()) == replace(other, shape=()) and shapes_meet(self.shape, other.shape)

    def as_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"dtype": self.dtype, "shape": [axis.as_json() for axis in self.shape]}
        if self.size is not None:
            record["size"] = self.size
        if self.per != "example":
            record["per"] = self.per
        if self.of:
            record["of"] = self.of
        if self.ends:
            record["ends"] = [axis.as_json() for axis in self.ends]
        return record


def _list_dimensions(shape: Shape) -> tuple[int | str, ...]:
    return tuple(axis.lengths if axis.size is None else axis.size for axis in shape)


def edges(axis: Axis, source: Axis, target: Axis) -> TensorType:
    """The type of edges along an axis."""
    return TensorType("edge", (axis, Axis(2)), ends=(source, target))


def floats(*axes: Axis | int) -> TensorType:
    return TensorType("float", shape_of(axes))
