"""Functions of single numbers, arithmetic and comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference.call import OPS, Call, op
from tests.reference.values import Array, Unsupported, broadcast_over

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + erf(x / math.sqrt(2))))


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": gelu,
    "silu": lambda x: x * sigmoid(x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "softplus": lambda x: np.logaddexp(0, x),
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "identity": lambda x: x,
    "mask_padding": lambda x: x,  # an example has none here
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "abs": np.abs,
    "erf": erf,
    "round": np.round,
    "floor": np.floor,
    "stop_gradient": lambda x: x,
}
OF_TWO: dict[str, Callable[[Any, Any], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}
OPS.update({name: lambda call, x, function=function: function(x) for name, function in FUNCTIONS.items()})


@op("gelu")
def approximate_gelu(call: Call, x: Array) -> Array:
    if call.setting("approximate", "none") == "none":
        return gelu(x)
    return np.asarray(x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


@op("sign")
def sign(call: Call, x: Array) -> Array:
    if np.isnan(x).any():
        raise Unsupported("a sign of what is no number")
    return np.sign(x)


@op("leaky_relu")
def leaky_relu(call: Call, x: Array) -> Array:
    return np.where(x > 0, x, call.setting("slope", 0.01) * x)


@op("clamp")
def clamp(call: Call, x: Array) -> Array:
    return np.clip(x, call.setting("min", -np.inf), call.setting("max", np.inf))


@op(*OF_TWO)
def of_two(call: Call, *values: Array) -> Array:
    """Two values, one perhaps a constant, that stand over each other as their axes are called."""
    left, right = call.setting("left"), call.setting("right")
    found = [broadcast_over(x, type_.axes, call.gives[0].axes) for x, type_ in zip(values, call.takes, strict=True)]
    if left is not None:
        found.insert(0, np.asarray(left, np.float64))
    if right is not None:
        found.append(np.asarray(right, np.float64))
    return np.asarray(OF_TWO[call.op](*found), np.float64 if call.gives[0].dtype == "float" else np.int64)


@op("where")
def where(call: Call, *values: Array) -> Array:
    """The second value where the first is not zero, the third elsewhere."""
    over = dict(zip(call.slots, call.takes, strict=True))
    given = dict(zip(call.slots, values, strict=True))
    broadcast = {slot: broadcast_over(x, over[slot].axes, call.gives[0].axes) for slot, x in given.items()}
    first, other = broadcast.get("chosen", call.setting("then")), broadcast.get("other", call.setting("otherwise"))
    kind = np.float64 if call.gives[0].dtype == "float" else np.int64
    return np.asarray(np.where(broadcast["condition"] != 0, first, other), kind)


@op("training_or_inference")
def training_or_inference(call: Call, training: Array, inference: Array) -> Array:
    return training if call.training else inference


@op("straight_through")
def straight_through(call: Call, soft: Array, hard: Array) -> Array:
    return hard


@op("dropout", "drop_path")
def dropout(call: Call, x: Array) -> Array:
    """Forced ones say where a value stays."""
    rate = call.setting("rate", 0.1)
    return x * call.chance() / (1 - rate) if call.training and rate else x


@op("normal_noise")
def normal_noise(call: Call, x: Array, *deviation: Array) -> Array:
    """Forced are standard normal numbers."""
    scale = deviation[0] if deviation else call.setting("deviation")
    if not call.training or (not deviation and scale == 0):
        return np.zeros_like(x)
    return call.chance() * scale


@op("gumbel_noise")
def gumbel_noise(call: Call, x: Array) -> Array:
    return call.chance() if call.training else np.zeros_like(x)
