"""Layers on numpy arrays: numpy begins an operation on a few hundred numbers in a tenth of the time that torch needs.

Each function gives, but for rounding, what the layer gives in inference for float32 values without padding. It binds
the layer's weights, whose memory it shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import linear

from modgraph.nn.along_axis import Mean, Softmax, Sum
from modgraph.nn.arithmetic import Arithmetic
from modgraph.nn.choice import MaskedSoftmax, TopKMask
from modgraph.nn.elementwise import Clamp, Elementwise
from modgraph.nn.linear import Linear
from modgraph.nn.rotary import ScaledRotary
from modgraph.nn.shape import Concat, Flatten, Merge, Split, Transpose, Unmerge

Array = NDArray[Any]  # of float32
Function = Callable[..., Any]
ROTATIONS = 64  # kinds of rotary layers whose last rotation is kept
LARGEST = 8192  # numbers of a product that BLAS does not divide among threads of its own
LEAST, TINY = np.finfo(np.float32).min, np.finfo(np.float32).tiny


def find_array_function(layer: Any) -> Function | None:
    """Find the function on arrays of a layer; None if it has none."""
    make = MAKERS.get(type(layer))
    return None if make is None else make(layer)


def _bind(run: Callable[..., Any]) -> Callable[[Any], Function]:
    """A maker of functions that take the layer first."""
    return lambda layer: partial(run, layer)


# ------------------------------------------------------------ functions of numbers


def _silu(x: Array) -> Array:
    found: Array = x / (1 + np.exp(-x))
    return found


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _make_arithmetic(layer: Arithmetic) -> Function | None:
    if layer.symbol not in ("+", "-", "*", "/") or layer.left_order or layer.right_order or layer.ids:
        return None
    return layer.OPERATORS[layer.symbol] if layer.is_operator else partial(_compute, layer)


def _compute(layer: Arithmetic, *values: Array) -> Array:
    left, right = layer.pair(values)
    compute: Any = layer.OPERATORS[layer.symbol]
    found: Array = compute(_insert(left, layer.left_lacks), _insert(right, layer.right_lacks))
    return found


def _insert(value: Any, axes: tuple[int, ...]) -> Any:
    """Insert axes of size 1, counted from the last."""
    for axis in reversed(axes) if isinstance(value, np.ndarray) and value.ndim else ():
        value = np.expand_dims(value, axis)
    return value


def _make_elementwise(layer: Elementwise) -> Function | None:
    return getattr(np, layer.name) if layer.name in ("exp", "log", "sqrt", "sin", "cos", "abs") else None


# ------------------------------------------------------------ along an axis


def _make_linear(layer: nn.Linear) -> Function:
    """torch's product, which has threads and memory as one sets them."""
    weight, bias = layer.weight, layer.bias
    return lambda x: linear(torch.from_numpy(x), weight, bias).numpy()


def _make_rms_norm(layer: nn.RMSNorm) -> Function | None:
    if layer.weight is None or len(layer.normalized_shape) != 1:
        return None
    return partial(_normalise, layer.weight.detach().numpy(), layer.eps or torch.finfo(layer.weight.dtype).eps)


def _normalise(weight: Array, eps: float, x: Array) -> Array:
    """x / √(mean x² + ε) · w for x [..., D]."""
    size, row = x.shape[-1], x.ravel()
    is_row = row.size == size <= LARGEST
    squares: Any = float(row.dot(row)) if is_row else np.add.reduce(x * x, -1, keepdims=True)
    found: Array = x * (squares / size + eps) ** -0.5 * weight
    return found


def _power(x: Array, axis: int) -> Array:
    """exp(x) up to a factor."""
    found: Array = np.exp(x - np.maximum.reduce(x, axis, keepdims=True))
    return found


def _apply_softmax(axis: int, x: Array) -> Array:
    powers = _power(x, axis)
    found: Array = powers / np.add.reduce(powers, axis, keepdims=True)
    return found


def _make_masked_softmax(layer: MaskedSoftmax) -> Function | None:
    """A softmax without a sink, whose choice has its axes."""
    return None if any(layer.lacks) or any(layer.orders) else partial(_apply_masked_softmax, layer.axis)


def _apply_masked_softmax(axis: int, x: Array, choice: Array) -> Array:
    if x.size == x.shape[axis]:
        found = np.zeros(x.shape, x.dtype)
        places = choice.ravel().nonzero()[0]
        if len(places):
            found.ravel()[places] = _apply_softmax(-1, x.ravel()[places])
        return found
    inside = choice != 0
    powers: Array = _power(np.where(inside, x, LEAST), axis) * inside
    return powers / np.maximum(np.add.reduce(powers, axis, keepdims=True), TINY)


def _mark_top_k(layer: TopKMask, x: Array) -> Array:
    choice = np.zeros(x.shape, x.dtype)
    if x.size == x.shape[layer.axis]:
        _mark_largest(x.flatten(), choice.ravel(), layer.k)
        return choice
    rows = np.moveaxis(x, layer.axis, -1).reshape(-1, x.shape[layer.axis])
    places = np.moveaxis(choice, layer.axis, -1)
    for at, row in zip(np.ndindex(places.shape[:-1]), rows, strict=True):
        _mark_largest(row.copy(), places[at], layer.k)
    return choice


def _mark_largest(left: Array, choice: Array, k: int) -> None:
    """Set one at the k largest numbers; ties go to the first."""
    for _ in range(k):
        largest = left.argmax()
        choice[largest], left[largest] = 1.0, -np.inf


# ------------------------------------------------------------ axes


def _make_split(layer: Split) -> Function | None:
    if layer.axis >= 0:
        return None
    ends = [*accumulate(layer.lengths)]
    behind = (slice(None),) * (-1 - layer.axis)
    return partial(
        _split, [(..., slice(end - size, end), *behind) for end, size in zip(ends, layer.lengths, strict=True)]
    )


def _split(parts: Sequence[Any], x: Array) -> tuple[Array, ...]:
    return tuple(x[part] for part in parts)


def _merge(first: int, last: int, x: Array) -> Array:
    shape = x.shape
    return x.reshape(*shape[: len(shape) + first], -1, *shape[len(shape) + last :][1:])


def _unmerge(layer: Unmerge, x: Array) -> Array:
    at = x.ndim + layer.axis
    return x.reshape(*x.shape[:at], *layer.sizes, *x.shape[at + 1 :])


def _make_flatten(layer: Flatten) -> Function:
    return partial(_merge, -layer.rank, -1) if layer.rank else partial(np.expand_dims, axis=-1)


def _transpose(layer: Transpose, x: Array) -> Array:
    outer = x.ndim - len(layer.order)
    return x.transpose(*range(outer), *(x.ndim + each for each in layer.order))


def _concatenate(layer: Concat, *values: Array) -> Array:
    return np.concatenate(values, layer.axis)


# ------------------------------------------------------------ rotary positions


def _make_rotary(layer: ScaledRotary) -> Function | None:
    return None if layer.order else Rotation(layer.width, tuple(layer.speeds), layer.lacks)


@dataclass(eq=False)
class Rotation:
    """Rotates by the angles of places. Layers of equal speeds share those of the last places."""

    width: int
    speeds: tuple[float, ...]
    lacks: tuple[int, ...]

    def __post_init__(self) -> None:
        self.last = find_last(self.speeds, self.lacks)

    def __call__(self, x: Array, places: Array) -> Array:
        known, cos, sin = self.last[0]
        if known is not places:
            cos, sin = self.compute(places)
            self.last[0] = places, cos, sin
        given, half = x if self.width == x.shape[-1] else x[..., : self.width], self.width // 2
        turned = given * cos + np.concatenate((given[..., half:], given[..., :half]), -1) * sin
        return turned if given is x else np.concatenate((turned, x[..., self.width :]), -1)

    def compute(self, places: Array) -> tuple[Array, Array]:
        """Cosines and signed sines of places."""
        angles = _insert(places, self.lacks)[..., None] * np.array(self.speeds, np.float32)
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate((cos, cos), -1), np.concatenate((-sin, sin), -1)


@lru_cache(maxsize=ROTATIONS)
def find_last(speeds: tuple[float, ...], lacks: tuple[int, ...]) -> list[tuple[Any, Any, Any]]:
    """Where layers keep the last places, with their cosines and sines."""
    return [(None, None, None)]


MAKERS: dict[type, Callable[[Any], Function | None]] = {
    Arithmetic: _make_arithmetic,
    Elementwise: _make_elementwise,
    Clamp: lambda layer: lambda x: x.clip(layer.least, layer.largest),
    nn.SiLU: lambda layer: _silu,
    nn.Sigmoid: lambda layer: _sigmoid,
    nn.Tanh: lambda layer: np.tanh,
    nn.ReLU: lambda layer: lambda x: np.maximum(x, 0),
    Linear: _make_linear,
    nn.RMSNorm: _make_rms_norm,
    Softmax: lambda layer: partial(_apply_softmax, layer.axis),
    MaskedSoftmax: _make_masked_softmax,
    TopKMask: _bind(_mark_top_k),
    Sum: lambda layer: partial(np.add.reduce, axis=layer.axis),
    Mean: lambda layer: lambda x: np.add.reduce(x, layer.axis) / x.shape[layer.axis],
    Split: _make_split,
    Merge: lambda layer: partial(_merge, layer.first, layer.last),
    Unmerge: _bind(_unmerge),
    Flatten: _make_flatten,
    Transpose: _bind(_transpose),
    Concat: _bind(_concatenate),
    ScaledRotary: _make_rotary,
}
