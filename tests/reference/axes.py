"""Ops that move, join, cut and add axes, and values that are given or learned."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.reference.call import Call, op
from tests.reference.values import Array


@op("flatten")
def flatten(call: Call, x: Array) -> Array:
    outer = x.ndim - (call.setting("axes") or x.ndim)
    return x.reshape(*x.shape[:outer], prod(x.shape[outer:]))


@op("concat")
def concat(call: Call, *values: Array) -> Array:
    return np.concatenate(values, axis=call.place())


@op("stack")
def stack(call: Call, *values: Array) -> Array:
    return np.stack(values)


@op("split")
def split(call: Call, x: Array) -> tuple[Array, ...]:
    parts = call.settings["parts"]
    if isinstance(parts, int):
        return tuple(np.split(x, parts, axis=call.place()))
    return tuple(np.split(x, np.cumsum(parts)[:-1], axis=call.place()))


@op("rename")
def rename(call: Call, x: Array) -> Array:
    return x


@op("transpose")
def transpose(call: Call, x: Array) -> Array:
    """The axes that are given take the places that they had among them, in the order given."""
    given = call.places(call.setting("axes") or [-1, -2])
    order = [*range(x.ndim)]
    for place, axis in zip(sorted(given), given, strict=True):
        order[place] = axis
    return x.transpose(order)


@op("merge")
def merge(call: Call, x: Array) -> Array:
    given = call.places(call.setting("axes") or [-2, -1])
    first, last = given[0], given[-1]
    return x.reshape(*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :])


@op("unmerge")
def unmerge(call: Call, x: Array) -> Array:
    at = call.place()
    return x.reshape(*x.shape[:at], *call.settings["sizes"], *x.shape[at + 1 :])


@op("new_axis")
def new_axis(call: Call, x: Array) -> Array:
    return _repeated(x, call.setting("length", 1), call.setting("at"))


@op("expand")
def expand(call: Call, x: Array, like: Array) -> Array:
    length = like.shape[call.takes[1].place(call.settings["axis"])]
    return _repeated(x, length, call.setting("at"))


def _repeated(x: Array, length: int, at: int | None) -> Array:
    """x repeated along a new axis, the first, or one whose place in the result is counted from the last."""
    return np.stack([x] * length, axis=0 if at is None else at) if length else np.zeros(_empty(x, at))


def _empty(x: Array, at: int | None) -> tuple[int, ...]:
    place = 0 if at is None else at + x.ndim + 1
    return (*x.shape[:place], 0, *x.shape[place:])


@op("select")
def select(call: Call, x: Array) -> Array:
    """One place along an axis; of an axis of any length, which may hold nothing, the first, and of nothing zero."""
    at = call.place(-2)
    if x.shape[at] == 0:
        return np.zeros((*x.shape[:at], *x.shape[at + 1 :]))
    return np.asarray(x.take(call.settings["index"], axis=at))


@op("parameter")
def parameter(call: Call, like: Array) -> Array:
    return call.weight("")


@op("constant")
def constant(call: Call, like: Array) -> Array:
    sizes, numbers = call.setting("sizes", []), call.setting("numbers", [0.0])
    return np.full(sizes, numbers[0]) if len(numbers) == 1 else np.reshape(np.array(numbers, np.float64), sizes)


@op("embedding")
def embedding(call: Call, x: Array) -> Array:
    return call.weight("weight")[x]


@op("class_token")
def class_token(call: Call, x: Array) -> Array:
    """The learned token stands in front of the others."""
    token = np.broadcast_to(call.weight("weight"), (*x.shape[:-2], 1, x.shape[-1]))
    return np.concatenate([token, x], axis=-2)


@op("position")
def position(call: Call, x: Array) -> Array:
    return x + call.weight("weight")[: x.shape[-2]]


@op("positions")
def positions(call: Call, x: Array) -> Array:
    return np.arange(x.shape[call.place()], dtype=np.float64)
