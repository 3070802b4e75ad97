"""Prepares images for a model: size, grey or colour, and the scale of its training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from modgraph_runtime import Port
from modgraph_runtime.ports import Array

from modgraph.data.images import grey_of, read_image
from modgraph.prediction.facts import GREY

LIGHT = 0.5  # the mean of a border above which the background is light


def prepare_image(path: str, port: Port, how: Mapping[str, Any]) -> tuple[Array, bool]:
    """Prepare an image [C, H, W] of a file, and return whether it is the negative.

    A model of light objects on a dark background gets the negative of an image whose border is light. Raises
    `ModgraphError`.
    """
    channels, height, width = (int(axis) for axis in port.shape)
    light, negative = read_image(path, height, width), False
    if how["channels"] == GREY:
        light = grey_of(light)
        negative = how.get("ground") == "dark" and _border_of(light[0]) > LIGHT
        light = np.broadcast_to(1 - light if negative else light, (channels, height, width))
    mean, deviation = (_as_channels(how.get(key, default)) for key, default in (("mean", [0]), ("deviation", [1])))
    return np.ascontiguousarray((light - mean) / deviation, np.float32), negative


def _border_of(plane: Array) -> float:
    """Compute the mean along the border of a plane [H, W]."""
    inner = plane[1:-1, 1:-1]
    return float((plane.sum() - inner.sum()) / (plane.size - inner.size))


def _as_channels(numbers: Any) -> Array:
    return np.asarray(numbers, np.float32)[:, None, None]
