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


def windows(image: Array, kernel: int, stride: int, of_window: Callable[[Array], Array], dilation: int = 1) -> Array:
    """[C, H, W] to [results, H_out, W_out], what is made of each window [C, kernel, kernel]."""
    reach = dilation * (kernel - 1) + 1
    rows, columns = ((length - reach) // stride + 1 for length in image.shape[1:])
    found = [
        [
            of_window(image[:, y : y + reach : dilation, x : x + reach : dilation])
            for x in range(0, columns * stride, stride)
        ]
        for y in range(0, rows * stride, stride)
    ]
    return np.moveaxis(np.array(found), -1, 0)


@op("conv")
def conv(call: Call, x: Array) -> Array:
    weight, groups, dilation = call.weight("weight"), call.setting("groups", 1), call.setting("dilation", 1)
    kernel, stride, padding = call.setting("kernel", 3), call.setting("stride", 1), call.setting("padding", 0)
    reach = dilation * (kernel - 1)
    before, after = (reach // 2, reach - reach // 2) if padding == "same" else (padding, padding)
    bias = call.weight("bias") if call.setting("bias", True) else np.zeros(len(weight))

    def filtered(window: Array) -> Array:
        parts = zip(np.split(window, groups), np.split(weight, groups), strict=True)
        return np.asarray(np.concatenate([np.tensordot(filters, part, 3) for part, filters in parts]) + bias)

    def convolved(image: Array) -> Array:
        padded = np.pad(image, ((0, 0), (before, after), (before, after)))
        return windows(padded, kernel, stride, filtered, dilation)

    return each_image(x, convolved)


@op("conv_transpose")
def conv_transpose(call: Call, x: Array) -> Array:
    """Each place of an image adds filters to a window of the result, of which the sides are cut off."""
    weight, groups, kernel = call.weight("weight"), call.setting("groups", 1), call.setting("kernel", 3)
    step, dilation, cut = call.setting("stride", 1), call.setting("dilation", 1), call.setting("padding", 0)
    width, reach = call.settings["width"], dilation * (kernel - 1) + 1

    def spread(image: Array) -> Array:
        sides = [(length - 1) * step + reach + call.setting("output_padding", 0) for length in image.shape[1:]]
        found = np.zeros((width, *sides))
        for y, x in np.ndindex(image.shape[1:]):
            parts = zip(np.split(image[:, y, x], groups), np.split(weight, groups), strict=True)
            window = np.concatenate([np.tensordot(part, filters, 1) for part, filters in parts])
            at = tuple(slice(each * step, each * step + reach, dilation) for each in (y, x))
            found[(slice(None), *at)] += window
        found = found[:, cut : sides[0] - cut, cut : sides[1] - cut]
        return found + (call.weight("bias")[:, None, None] if call.setting("bias", True) else 0)

    return each_image(x, spread)


@op("max_pool", "avg_pool")
def pool(call: Call, x: Array) -> Array:
    kernel, padding = call.setting("kernel", 2), call.setting("padding", 0)
    stride, is_max = call.setting("stride") or kernel, call.op == "max_pool"
    of_window: Callable[[Array], Array] = (lambda w: w.max((1, 2))) if is_max else (lambda w: w.mean((1, 2)))

    def pooled(image: Array) -> Array:
        zeros, outside = ((0, 0), (padding, padding), (padding, padding)), -np.inf if is_max else 0.0
        return windows(np.pad(image, zeros, constant_values=outside), kernel, stride, of_window)

    return each_image(x, pooled)


@op("upsample")
def upsample(call: Call, x: Array) -> Array:
    """Along each side of n places that becomes m long, place i reads at i n / m, or at (i + 1/2) n / m − 1/2 between
    the centres of two pixels."""
    for at in (-2, -1):
        long = x.shape[at]
        size = call.settings["size"][at] if call.setting("size") else long * call.settings["scale"]
        if call.setting("mode", "nearest") == "nearest":
            x = x.take([place * long // size for place in range(size)], at)
            continue
        centres = np.maximum((np.arange(size) + 0.5) * long / size - 0.5, 0)
        left = np.floor(centres).astype(int)
        share = np.reshape(centres - left, (-1, *[1] * (-1 - at)))
        x = (1 - share) * x.take(left, at) + share * x.take(np.minimum(left + 1, long - 1), at)
    return x


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
