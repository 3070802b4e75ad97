"""A declaration at one use."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass
from typing import Any

from modgraph.declare.weight import Initial
from modgraph.types.pattern import Axes, Misfit
from modgraph.types.tensor import Axis, TensorType


@dataclass(frozen=True)
class Signature:
    """A declaration at one use: the types that go in, the axes they bind, the types that come out."""

    declaration: Any
    operands: tuple[TensorType, ...]
    axes: Axes
    results: tuple[TensorType, ...]

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights by name. Raises `Misfit` where an axis has no fixed length."""
        shapes = {}
        for weight in self.declaration.all_weights():
            shape = self.axes.shape(weight.axes)
            for axis in shape:
                if not isinstance(axis, int):
                    reason = f'{self.declaration.name} has a weight along the axis "{axis}", which has no fixed length'
                    raise Misfit(reason, "give the axis a number in the input's type")
            shapes[weight.name] = typing.cast(tuple[int, ...], shape)
        return shapes

    def scale_of(self, initial: Initial) -> float:
        """The bound of a uniform start, the deviation of a normal one."""
        if not initial.fan:
            return initial.scale
        return 1 / math.sqrt(math.prod(self.axes[axis] for axis in initial.fan.split()))

    def constructor(self) -> tuple[str, list[Any], dict[str, Any]]:
        """The torch module's path and the values its constructor takes."""
        module = self.declaration.module
        positional = [self.axes[name] for name in module.positional]
        return module.path, positional, {key: self.axes[name] for key, name in module.named.items()}


def product(shape: tuple[Axis, ...]) -> int:
    """The number of elements; symbolic axes must have been given a length before."""
    assert all(isinstance(axis, int) for axis in shape), shape
    return math.prod(typing.cast(tuple[int, ...], shape))
