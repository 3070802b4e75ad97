"""A colour for each module of a pool."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

NAMED = ("tab10", 10), ("tab20", 20)


def colours_of(modules: int) -> NDArray[Any]:
    """Red, green, blue and opacity of every module, [modules, 4], as different as so many can be."""
    for name, most in NAMED:
        if modules <= most:
            return np.asarray(colormaps[name](np.arange(modules)))
    return np.asarray(colormaps["turbo"](np.linspace(0, 1, modules)))
