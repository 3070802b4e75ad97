"""The context of an op's call, and the registries of ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.reference.values import Array, Lengths, Type, Unsupported, Value


@dataclass(frozen=True)
class Call:
    """One node that applies an op: its settings, the types of its operands and results, and its weights by name."""

    node: str
    op: str
    settings: dict[str, Any]
    slots: tuple[str, ...]
    takes: tuple[Type, ...]
    gives: tuple[Type, ...]
    training: bool
    lengths: Lengths
    weight: Callable[[str], Array]
    forced: Callable[[], Array | None]

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting, or its default in the reference."""
        return self.settings.get(name, default)

    def place(self, default: int = -1, operand: int = 0) -> int:
        """The place of the op's axis in an operand, from 0."""
        return self.takes[operand].place(self.setting("axis", default))

    def places(self, listed: list[int | str]) -> list[int]:
        return [self.takes[0].place(axis) for axis in listed]

    def chance(self) -> Array:
        """The random numbers that the caller forces here in training."""
        found = self.forced()
        if found is None:
            raise Unsupported(f'"{self.op}" at "{self.node}" draws in training, and nothing says what')
        return found


@dataclass(frozen=True)
class BatchCall:
    """One node that applies an op which looks at all examples: a call for each of them, and states to read and move."""

    calls: tuple[Call, ...]
    read_state: Callable[[str], Array]
    move_state: Callable[[str, Array], None]

    @property
    def first(self) -> Call:
        return self.calls[0]


OfExample = Callable[..., Any]  # a call and arrays of one example give an array, or several
OfBatch = Callable[..., Value]  # a batch call and values give a value
OPS: dict[str, OfExample] = {}
BATCH_OPS: dict[str, OfBatch] = {}


def op(*names: str) -> Callable[[OfExample], OfExample]:
    """Register a function of one example for some ops."""

    def register(function: OfExample) -> OfExample:
        OPS.update(dict.fromkeys(names, function))
        return function

    return register


def batch_op(*names: str) -> Callable[[OfBatch], OfBatch]:
    """Register a function of a batch for some ops."""

    def register(function: OfBatch) -> OfBatch:
        BATCH_OPS.update(dict.fromkeys(names, function))
        return function

    return register
