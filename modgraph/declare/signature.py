"""A declaration at one use, and its weights: axes by pattern, and how they start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from modgraph.types.axis import Shape, TensorType
from modgraph.types.pattern import Axes, Misfit


@dataclass(frozen=True)
class Initial:
    """How a weight starts: `zeros`, `ones`, `constant`, `normal` or `uniform`; the scale is the value, the standard
    deviation, the bound."""

    kind: str
    scale: float = 1.0
    fan: str = ""  # axes whose product n makes the bound 1/√n

    def __str__(self) -> str:
        return f"{self.kind}({self.scale})"


ZEROS = Initial("zeros")
ONES = Initial("ones")


def normal(deviation: float) -> Initial:
    return Initial("normal", deviation)


def uniform(fan: str) -> Initial:
    """U(−1/√n, 1/√n), n the product of the axes in `fan`; Kaiming-uniform with a = √5 is this with n the fan-in."""
    return Initial("uniform", fan=fan)


@dataclass(frozen=True)
class Weight:
    """A weight: its name in the state dict, its axes, how it starts.

    A `shared` weight belongs to a pool as a whole, others to each of its modules. A `buffer` is state that no
    gradient moves. `when` names settings without which the weight is absent, if one is false or not given.
    """

    name: str
    axes: str
    initial: Initial = ZEROS
    when: str = ""
    shared: bool = False
    buffer: bool = False


@dataclass(frozen=True)
class Signature:
    """A declaration at one use: the types that go in, the axes they bind, the types that come out."""

    declaration: Any
    operands: tuple[TensorType, ...]
    axes: Axes
    results: tuple[TensorType, ...]

    def weight_axes(self) -> dict[str, Shape]:
        """The axes of the weights by name. Raises `Misfit` where one has no fixed length."""
        found = {}
        for weight in self.declaration.all_weights():
            shape = self.axes.list_axes(weight.axes)
            for axis in shape:
                if axis.size is None:
                    reason = f'{self.declaration.name} has a weight along the axis "{axis}", which has no fixed length'
                    raise Misfit(reason, "give the axis a number in the input's type")
            found[weight.name] = shape
        return found

    @cached_property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Their lengths. Raises `Misfit` where an axis has no fixed length."""
        return {name: sizes(shape) for name, shape in self.weight_axes().items()}

    def padding(self) -> tuple[dict[int, str], ...]:
        """For each operand the axes whose padding the declaration must be told: their names by place, from 0."""
        names = {axis.name for axis in self.declaration.list_masked_axes(self) if axis.is_padded}
        return tuple(
            {at: axis.name for at, axis in enumerate(type_.shape) if axis.name in names} for type_ in self.operands
        )

    @cached_property
    def padded(self) -> tuple[str, ...]:
        """The names of these axes, each once."""
        return tuple(dict.fromkeys(name for operand in self.padding() for name in operand.values()))

    def scale_of(self, initial: Initial) -> float:
        """The bound of a uniform start, the deviation of a normal one."""
        if not initial.fan:
            return initial.scale
        return 1 / math.sqrt(math.prod(self.axes.resolve(axis) for axis in initial.fan.split()))

    def constructor(self) -> tuple[str, list[Any], dict[str, Any]]:
        """The torch module's path and the values its constructor takes."""
        module = self.declaration.module
        positional = [self.axes.resolve(name) for name in module.positional]
        return module.path, positional, {key: self.axes.resolve(name) for key, name in module.named.items()}


def sizes(shape: Shape) -> tuple[int, ...]:
    """The lengths of axes, which must all have one."""
    assert not any(axis.is_padded for axis in shape), shape
    return tuple(axis.size or 0 for axis in shape)


def product(shape: Shape) -> int:
    """The number of elements of axes, which must all have a length."""
    return math.prod(sizes(shape))
