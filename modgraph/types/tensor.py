"""The type of a value: what one example holds. The batch axis is never written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Axis = int | str  # a length, or the name of a symbolic axis
DType = Literal["float", "token", "class", "length"]


class ModuleAxis(int):
    """The length of an axis that holds one result for each module of a pool; it remembers which pool."""

    pool: str

    @classmethod
    def of(cls, size: int, pool: str) -> ModuleAxis:
        axis = cls(size)
        axis.pool = pool
        return axis


@dataclass(frozen=True)
class TensorType:
    """`float[N, D]`, `token[time, vocabulary]`, `class[n]`.

    `size` is the vocabulary of a token or the number of classes. `per` says whether each example has a value of its
    own or the batch has one (a balance statistic over a batch).
    """

    dtype: DType
    shape: tuple[Axis, ...] = ()
    size: int | None = None
    per: Literal["example", "batch"] = "example"

    def __str__(self) -> str:
        inside = [*self.shape] if self.size is None else [*self.shape, self.size]
        axes = f"[{', '.join(map(str, inside))}]" if inside else ""
        return f"{self.dtype}{axes}{' over batch' if self.per == 'batch' else ''}"

    @property
    def symbolic(self) -> tuple[str, ...]:
        return tuple(axis for axis in self.shape if isinstance(axis, str))

    def with_shape(self, shape: tuple[Axis, ...]) -> TensorType:
        return TensorType(self.dtype, shape, self.size, self.per)

    def as_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"dtype": self.dtype, "shape": list(self.shape)}
        if self.size is not None:
            record["size"] = self.size
        if self.per != "example":
            record["per"] = self.per
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> TensorType:
        return cls(record["dtype"], tuple(record["shape"]), record.get("size"), record.get("per", "example"))


def floats(*shape: Axis) -> TensorType:
    return TensorType("float", shape)


def shown(shape: tuple[Axis, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
