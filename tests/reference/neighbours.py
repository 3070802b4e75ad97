"""Shift, one-dimensional convolution and rotary positions, place by place."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.call import Call, op
from tests.reference.values import Array, broadcast_over


@op("shift")
def shift(call: Call, x: Array) -> Array:
    lines, n = np.moveaxis(x, call.place(-2), 0), call.setting("n", 1)
    found = np.zeros_like(lines)
    for at in range(len(lines)):
        if 0 <= at - n < len(lines):
            found[at] = lines[at - n]
    return np.moveaxis(found, 0, call.place(-2))


@op("append")
def append(call: Call, before: Array, x: Array) -> Array:
    return np.concatenate((before, x), call.place(-2, 1))


@op("tail")
def tail(call: Call, joined: Array, x: Array) -> Array:
    place = call.place(-2, 1)
    return np.take(joined, range(joined.shape[place] - x.shape[place], joined.shape[place]), place)


@op("recent")
def recent(call: Call, joined: Array, x: Array) -> Array:
    place = call.place(-2, 1)
    size = joined.shape[place]
    return np.take(joined, range(size - call.setting("count"), size), place)


@op("retain")
def retain(call: Call, joined: Array) -> Array:
    """The first and the last tokens, each once."""
    place = call.place(-2)
    size, first, last = joined.shape[place], call.setting("first", 0), call.setting("last", 1)
    return np.take(joined, [at for at in range(size) if at < first or at >= size - last], place)


@op("conv1d")
def conv1d(call: Call, x: Array) -> Array:
    """Each filter at each place, over the places that the operand has."""
    place, weight = call.place(-2), call.weight("weight")
    lines = np.moveaxis(x, place, -2)  # [..., N, D]
    width, taken, kernel = weight.shape
    stride, dilation, padding = call.setting("stride", 1), call.setting("dilation", 1), call.setting("padding", 0)
    reach = dilation * (kernel - 1)
    first = {"causal": reach, "same": reach // 2}.get(padding, padding)
    zeros = reach if isinstance(padding, str) else 2 * padding
    count = (lines.shape[-2] + zeros - reach - 1) // stride + 1
    of_group = width // call.setting("groups", 1)
    found = np.zeros((*lines.shape[:-2], count, width))
    for t in range(count):
        for filter_ in range(width):
            channels = slice(filter_ // of_group * taken, (filter_ // of_group + 1) * taken)
            for k in range(kernel):
                read = t * stride + dilation * k - first
                if 0 <= read < lines.shape[-2]:
                    found[..., t, filter_] += lines[..., read, channels] @ weight[filter_, :, k]
    if call.setting("bias", True):
        found = found + call.weight("bias")
    return np.moveaxis(found, -2, place)


@op("rotary")
def rotary(call: Call, x: Array, places: Array | None = None) -> Array:
    """Pairs as complex numbers, each times e^(i · angle)."""
    place = call.place(-2)
    if places is None:
        at = np.arange(x.shape[place]).reshape(-1, *[1] * (x.ndim - 2 - place))
    else:
        at = broadcast_over(places, call.takes[1].axes, call.takes[0].axes[:-1])
    half = int(x.shape[-1] * call.setting("partial", 1.0)) // 2
    pairs = x[..., :half] + 1j * x[..., half : 2 * half]
    turned = pairs * np.exp(1j * at[..., None] * np.array([_speed(call, i, half) for i in range(half)]))
    return np.concatenate([turned.real, turned.imag, x[..., 2 * half :]], axis=-1)


def _speed(call: Call, i: int, half: int) -> float:
    speed = float(call.setting("base", 10000.0) ** (-i / half))
    scaled, trained = call.setting("scaled", 1.0), call.setting("trained")
    if trained is None:
        return speed / scaled
    low, high = call.setting("cycles", [1.0, 4.0])
    cycles = trained / (2 * math.pi / speed)
    if cycles < low:
        return speed / scaled
    if cycles > high:
        return speed
    share = (cycles - low) / (high - low)
    if call.setting("fade") == "logarithmic":
        share = math.log(cycles / low) / math.log(high / low)
    return (1 - share) * speed / scaled + share * speed
