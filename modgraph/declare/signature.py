"""A declaration bound at one use; its weights and their initialisers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from modgraph.types.axis import Shape, TensorType
from modgraph.types.pattern import Axes, Misfit

OF_MATRICES = ("orthogonal", "xavier_normal", "xavier_uniform")
INITIALIZERS = {  # the fewest and the most numbers of each
    **{"zeros": (0, 0), "ones": (0, 0), "constant": (1, 1), "normal": (1, 1), "uniform": (1, 1)},
    **dict.fromkeys(OF_MATRICES, (0, 1)),
}


@dataclass(frozen=True)
class Initial:
    """An initialiser by its kind: the scale is the value of `constant`, the standard deviation of `normal`, the bound
    of `uniform`, the gain of `OF_MATRICES`."""

    kind: str
    scale: float = 1.0
    fan: str = ""  # axes whose product n makes the bound 1/√n

    @property
    def is_of_matrix(self) -> bool:
        """Whether the numbers depend on the shape of a matrix."""
        return self.kind in OF_MATRICES

    def __str__(self) -> str:
        return f"{self.kind}({self.scale})"


ZEROS = Initial("zeros")
ONES = Initial("ones")


def normal(deviation: float) -> Initial:
    return Initial("normal", deviation)


def uniform(fan: str) -> Initial:
    """U(−1/√n, 1/√n) for n the product of the axes in `fan`; with n the fan-in, Kaiming-uniform with a = √5."""
    return Initial("uniform", fan=fan)


@dataclass(frozen=True)
class Weight:
    """A weight: its name in the state dict, its axes, its initialiser.

    A `shared` weight belongs to a pool as a whole, any other to each module. A `buffer` is state that no gradient
    moves. `when` names settings; the weight is absent if one of them is false or not given.
    """

    name: str
    axes: str
    initial: Initial = ZEROS
    when: str = ""
    shared: bool = False
    buffer: bool = False

    @property
    def is_stacked(self) -> bool:
        """Whether the last two axes are those of a matrix, and all outer ones stack such matrices: of a learned array.

        Of any other weight the first axis is that of the outputs, the second that of the inputs.
        """
        return self.axes == "..."


@dataclass(frozen=True)
class Signature:
    """A declaration at one use: the types of its operands, the axes they bind, the types of its results."""

    declaration: Any
    operands: tuple[TensorType, ...]
    axes: Axes
    results: tuple[TensorType, ...]

    def weight_axes(self) -> dict[str, Shape]:
        """Return the axes of the weights by name. Raises `Misfit` for an axis of any length."""
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
        """The shapes of the weights by name. Raises `Misfit` for an axis of any length."""
        return {name: sizes(shape) for name, shape in self.weight_axes().items()}

    def padding(self) -> tuple[dict[int, str], ...]:
        """Return, for each operand, the padded axes whose mask the declaration needs: names of lengths by place, from
        0."""
        axes = {axis for axis in self.declaration.list_masked_axes(self) if axis.is_padded}
        return tuple(
            {at: axis.lengths for at, axis in enumerate(type_.shape) if axis in axes} for type_ in self.operands
        )

    @cached_property
    def padded(self) -> tuple[str, ...]:
        """The names of the lengths in `padding`, each once."""
        return tuple(dict.fromkeys(name for operand in self.padding() for name in operand.values()))

    def compute_scale(self, weight: Weight, initial: Initial) -> float:
        """Return the bound of a uniform initialiser, the deviation of a normal one, the gain of an orthogonal one.

        Xavier's deviation is gain · √(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010, equation 12). Raises `Misfit`
        for an initialiser of matrices and a weight with fewer than two axes.
        """
        if initial.is_of_matrix:
            shape = sizes(self.axes.list_axes(weight.axes))
            if len(shape) < 2:
                reason = f"{initial.kind} needs two axes or more, and the weight has the shape {[*shape]}"
                raise Misfit(reason, "start it by zeros, ones, normal(0.02) or uniform(0.1)")
            fans = sum(shape[-2:]) if weight.is_stacked else sum(shape[:2]) * math.prod(shape[2:])
            of_uniform = {"xavier_normal": 2.0, "xavier_uniform": 6.0}.get(initial.kind)
            return initial.scale * (1 if of_uniform is None else math.sqrt(of_uniform / fans))
        if not initial.fan:
            return initial.scale
        return 1 / math.sqrt(math.prod(self.axes.resolve(axis) for axis in initial.fan.split()))

    def constructor(self) -> tuple[str, list[Any], dict[str, Any]]:
        """Return the torch module's path and the arguments of its constructor."""
        module = self.declaration.module
        positional = [self.axes.resolve(name) for name in module.positional]
        return module.path, positional, {key: self.axes.resolve(name) for key, name in module.named.items()}


def sizes(shape: Shape) -> tuple[int, ...]:
    """Return the sizes of axes; none may be of any length."""
    assert not any(axis.is_padded for axis in shape), shape
    return tuple(axis.size or 0 for axis in shape)


def product(shape: Shape) -> int:
    """Return the number of elements of a shape; no axis may be of any length."""
    return math.prod(sizes(shape))
