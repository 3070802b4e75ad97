"""Linear maps and normalisation."""

from __future__ import annotations

import numpy as np

from tests.reference.call import BatchCall, Call, batch_op, op
from tests.reference.elementwise import FUNCTIONS
from tests.reference.values import Array, Value


def mapped(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """W x + b of the last axis."""
    found: Array = x @ weight.T
    return found if bias is None else found + bias


@op("linear")
def linear(call: Call, x: Array) -> Array:
    return mapped(x, call.weight("weight"), call.weight("bias") if call.setting("bias", True) else None)


@op("scale")
def scale(call: Call, x: Array) -> Array:
    return x * call.weight("weight")


@op("modulated_linear")
def modulated_linear(call: Call, x: Array) -> Array:
    return _modulated(call, x, "")


@op("modulated_mlp")
def modulated_mlp(call: Call, x: Array) -> Array:
    activation = FUNCTIONS[call.setting("activation", "relu")]
    for layer in range(len(call.settings["widths"])):
        x = _modulated(call, activation(x) if layer else x, f"{layer}.")
    return x


def _modulated(call: Call, x: Array, layer: str) -> Array:
    """W (x ⊙ LayerNorm(Wc c)) + b."""
    gain = normalised(mapped(call.weight("code"), call.weight(f"{layer}code_weight")), 1e-5)
    return mapped(x * gain, call.weight(f"{layer}weight"), call.weight(f"{layer}bias"))


def normalised(x: Array, eps: float, axes: int | tuple[int, ...] = -1) -> Array:
    """x less its mean, divided by its deviation."""
    off = x - x.mean(axes, keepdims=True)
    found: Array = off / np.sqrt((off**2).mean(axes, keepdims=True) + eps)
    return found


@op("layer_norm")
def layer_norm(call: Call, x: Array) -> Array:
    found = normalised(x, call.setting("eps", 1e-6))
    return found * call.weight("weight") + call.weight("bias") if call.setting("learned", True) else found


def rms_normalised(x: Array, weight: Array, eps: float = 1e-6) -> Array:
    found: Array = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight
    return found


@op("rms_norm")
def rms_norm(call: Call, x: Array) -> Array:
    return rms_normalised(x, call.weight("weight"), call.setting("eps", 1e-6))


def _of_channels(weight: Array) -> Array:
    return weight[:, None, None]


@op("group_norm")
def group_norm(call: Call, x: Array) -> Array:
    groups = call.settings["groups"]
    *outer, channels, height, width = x.shape
    grouped = x.reshape(*outer, groups, channels // groups, height, width)
    found = normalised(grouped, call.setting("eps", 1e-5), (-3, -2, -1)).reshape(x.shape)
    return found * _of_channels(call.weight("weight")) + _of_channels(call.weight("bias"))


@batch_op("batch_norm")
def batch_norm(call: BatchCall, x: Value) -> Value:
    """Each channel over the examples of a batch and all places; by running statistics outside training."""
    one = call.first
    mean, variance = call.read_state("running_mean"), call.read_state("running_var")
    if one.training:
        images = [each.reshape(-1, *each.shape[-3:]) for each in x.arrays]
        numbers = np.concatenate(images).swapaxes(0, 1).reshape(images[0].shape[1], -1)  # [C, places]
        moved, count = one.setting("momentum", 0.1), numbers.shape[1]
        if count:
            old, (mean, variance) = (mean, variance), (numbers.mean(1), numbers.var(1))
            call.move_state("running_mean", (1 - moved) * old[0] + moved * mean)
            call.move_state("running_var", (1 - moved) * old[1] + moved * variance * count / max(1, count - 1))
    gain = one.weight("weight") / np.sqrt(variance + one.setting("eps", 1e-5))
    found = [(each - _of_channels(mean)) * _of_channels(gain) + _of_channels(one.weight("bias")) for each in x.arrays]
    return Value(one.gives[0], tuple(found))
