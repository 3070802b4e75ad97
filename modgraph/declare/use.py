"""A declaration at one use, on the tape of a training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from modgraph.declare.signature import Signature, product
from modgraph.tape import Tape, Value
from modgraph.types import TensorType


@dataclass(frozen=True)
class Use:
    """`rows` messages go through a declaration; its axes have lengths here, its weights stand under their names.

    `masks` has for each operand how many axes' worth of truth values tell its padding, as a count; 0 for none.
    """

    tape: Tape
    signature: Signature
    rows: float
    weights: Mapping[str, Value] = field(default_factory=dict)
    masks: tuple[float, ...] = ()

    def axis(self, name: str) -> Any:
        """An axis' length, a setting, a derived length."""
        return self.signature.axes.fixed(name)

    @property
    def lead(self) -> float:
        """How many messages there are, the axes outside of each included."""
        return self.rows * product(self.signature.axes.lead or ())

    def count(self, type_: TensorType) -> float:
        """The numbers of a value of some type."""
        return numbers(type_, self.rows)

    @property
    def results(self) -> tuple[float, ...]:
        """The numbers of each result."""
        return tuple(map(self.count, self.signature.results))

    @property
    def result(self) -> float:
        """The numbers of the only result."""
        (count,) = self.results
        return count

    def mask(self, operand: int = 0) -> float:
        """How many truth values tell the padding of an operand, 0 where there is none."""
        return self.masks[operand] if operand < len(self.masks) else 0

    def cleared(self, x: Value, operand: int = 0) -> Value:
        """An operand without its padding."""
        return self.tape.cleared(x, self.mask(operand))


def numbers(type_: TensorType, rows: float) -> float:
    """How many numbers a value of some type has in so many rows."""
    return prod(axis.size or 0 for axis in type_.shape) * (1 if type_.per == "batch" else rows)
