"""Convolution and pooling, one window after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.reference.call import Call, op
from tests.reference.values import Array


def each_image(x: Array, function: Callable[[Array], Array]) -> Array:
    """Apply a function to each image [C, H, W] of an array with outer axes."""
    outer = x.shape[:-3]
    found = [function(x[index]) for index in np.ndindex(outer)]
    return np.stack(found).reshape(*outer, *found[0].shape) if found else _none(x, function)


def _none(x: Array, function: Callable[[Array], Array]) -> Array:
    return np.zeros((*x.shape[:-3], *function(np.zeros(x.shape[-3:])).shape))


def windows(image: Array, kernel: int, stride: int, of_window: Callable[[Array], Array]) -> Array:
    """[C, H, W] to [results, H_out, W_out], what is made of each window [C, kernel, kernel]."""
    rows, columns = ((length - kernel) // stride + 1 for length in image.shape[1:])
    found = [
        [of_window(image[:, y : y + kernel, x : x + kernel]) for x in range(0, columns * stride, stride)]
        for y in range(0, rows * stride, stride)
    ]
    return np.moveaxis(np.array(found), -1, 0)


@op("conv")
def conv(call: Call, x: Array) -> Array:
    weight, groups = call.weight("weight"), call.setting("groups", 1)
    kernel, stride, padding = call.setting("kernel", 3), call.setting("stride", 1), call.setting("padding", 0)
    before, after = ((kernel - 1) // 2, kernel // 2) if padding == "same" else (padding, padding)
    bias = call.weight("bias") if call.setting("bias", True) else np.zeros(len(weight))

    def filtered(window: Array) -> Array:
        parts = zip(np.split(window, groups), np.split(weight, groups), strict=True)
        return np.asarray(np.concatenate([np.tensordot(filters, part, 3) for part, filters in parts]) + bias)

    def convolved(image: Array) -> Array:
        return windows(np.pad(image, ((0, 0), (before, after), (before, after))), kernel, stride, filtered)

    return each_image(x, convolved)


@op("max_pool", "avg_pool")
def pool(call: Call, x: Array) -> Array:
    kernel = call.setting("kernel", 2)
    stride = call.setting("stride") or kernel
    of_window: Callable[[Array], Array] = (
        (lambda w: w.max((1, 2))) if call.op == "max_pool" else lambda w: w.mean((1, 2))
    )
    return each_image(x, lambda image: windows(image, kernel, stride, of_window))


@op("tokens")
def tokens(call: Call, x: Array) -> Array:
    return each_image(x, _by_place)


def _by_place(image: Array) -> Array:
    """[C, H, W] to [H W, C], row by row."""
    return image.reshape(len(image), -1).T


@op("patch_embed")
def patch_embed(call: Call, x: Array) -> Array:
    patch, weight, bias = call.settings["patch"], call.weight("weight"), call.weight("bias")

    def embedded(window: Array) -> Array:
        return np.tensordot(weight, window, 3) + bias

    return each_image(x, lambda image: _by_place(windows(image, patch, patch, embedded)))
