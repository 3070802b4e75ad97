"""The type of a value: what one example holds. The batch axis is never written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from modgraph.types.axis import Axis, Shape, may_meet, shape_of, shapes_meet

DType = Literal["float", "token", "class", "length"]


@dataclass(frozen=True)
class TensorType:
    """`float[N, D]`, `token[time, vocabulary]`, `class[n]`, `length[time]`.

    `size` is the vocabulary of a token or the number of classes. `of` is the name of the axis along which a `length`
    tells how long each example is, or of that of a label's classes, if it has one: `class[kind=10]`. `per` says
    whether each example has a value of its own or the batch has one (a balance statistic over a batch).
    """

    dtype: DType
    shape: Shape = ()
    size: int | None = None
    per: Literal["example", "batch"] = "example"
    of: str = ""

    def __str__(self) -> str:
        rest = [str(Axis(self.size, self.of))] if self.size is not None or self.of else []
        inside = [*map(str, self.shape), *rest]
        axes = f"[{', '.join(inside)}]" if inside else ""
        return f"{self.dtype}{axes}{' over batch' if self.per == 'batch' else ''}"

    @property
    def padded(self) -> tuple[str, ...]:
        """The names of its axes of any length."""
        return tuple(axis.name for axis in self.shape if axis.is_padded)

    @property
    def classes(self) -> Axis | None:
        """The axis of the values that a label takes, of a label."""
        return Axis(self.size, self.of) if self.dtype == "class" else None

    @property
    def dimensions(self) -> tuple[int | str, ...]:
        """How long its axes are, and the names of those of any length."""
        return tuple(axis.name if axis.size is None else axis.size for axis in self.shape)

    def with_shape(self, shape: Sequence[Axis | int]) -> TensorType:
        return TensorType(self.dtype, shape_of(shape), self.size, self.per, self.of)

    def position(self, name: str) -> int | None:
        """Where an axis of a name stands, from 0, or None."""
        return next((at for at, axis in enumerate(self.shape) if axis.name == name), None)

    def meets(self, other: TensorType) -> bool:
        """Whether a value of one type may stand where one of the other is meant."""
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
        return record


def floats(*axes: Axis | int) -> TensorType:
    return TensorType("float", shape_of(axes))
