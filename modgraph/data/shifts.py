"""Shifts: what may be done to the images of a task, so that they look unlike those of others."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from modgraph.declare import Registry, setting
from modgraph.recipes.schema import Named

Images = NDArray[np.float32]  # [B, C, H, W], from 0 for black to 1 for white


class Shift(Named):
    """What is done to images, each by itself."""

    registry: ClassVar[Registry[Shift]] = Registry("shift")

    @abstractmethod
    def shifted(self, light: Images, examples: NDArray[np.int64]) -> Images:
        """Images after the shift. What is drawn at random is a function of an example's numbers, [B, 2]."""


class Unshifted(Shift):
    """Images stay as they are."""

    name = "none"

    def shifted(self, light: Images, examples: NDArray[np.int64]) -> Images:
        return light


class Inverted(Shift):
    """Black becomes white: a pixel of p, from 0 to 1, becomes 1 − p, in every channel."""

    name = "inverted"

    def shifted(self, light: Images, examples: NDArray[np.int64]) -> Images:
        return 1 - light


class Rotated(Shift):
    """Images are turned about the middle, bilinear between pixels; black where nothing was."""

    name = "rotated"

    angle: float = setting(90.0, doc="in degrees, against the clock")

    def shifted(self, light: Images, examples: NDArray[np.int64]) -> Images:
        from scipy.ndimage import rotate

        turned: Images = rotate(light, self.angle, axes=(3, 2), reshape=False, order=1)
        return turned


class Noisy(Shift):
    """To every pixel of every channel, from 0 to 1, a normal number is added; what leaves 0 to 1 is cut off.

    An image has the same noise whenever it is read: it is drawn by the seed, the split and the image's place in that.
    """

    name = "noisy"

    deviation: float = setting(0.3, min=0, doc="of the noise")
    seed: int = setting(0, min=0, doc="of the noise")

    def shifted(self, light: Images, examples: NDArray[np.int64]) -> Images:
        noise = np.empty_like(light)
        for image, numbers in zip(noise, examples.tolist(), strict=True):
            np.random.default_rng((self.seed, *numbers)).standard_normal(dtype=np.float32, out=image)
        return np.clip(light + np.float32(self.deviation) * noise, 0, 1)
