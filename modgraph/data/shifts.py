"""Shifts: transforms of the images of a task, so that tasks differ."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

from modgraph.data.declaration import OnDisk, Scale
from modgraph.declare import Registry, setting
from modgraph.recipes.schema import Named

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from modgraph.diagnostics import Diagnostic

    Images = NDArray[np.float32]  # [B, C, H, W], from 0 for black to 1 for white

ROUNDING = 1e-6  # of a position between pixels


class Shift(Named):
    """A transform of images, one by one."""

    registry: ClassVar[Registry[Shift]] = Registry("shift")

    @abstractmethod
    def apply(self, light: Images, examples: NDArray[np.int64]) -> Images:
        """Transform images [B, C, H, W]. Noise is a function of each example's numbers, [B, 2]."""


class Unshifted(Shift, name="none"):
    """Images stay unchanged."""

    def apply(self, light: Images, examples: NDArray[np.int64]) -> Images:
        return light


class Inverted(Shift, name="inverted"):
    """Black becomes white: a pixel p, from 0 to 1, becomes 1 − p, in every channel."""

    def apply(self, light: Images, examples: NDArray[np.int64]) -> Images:
        return 1 - light


class Rotated(Shift, name="rotated"):
    """Images are rotated about their centre with bilinear interpolation; new corners are black."""

    angle: float = setting(90.0, doc="angle in degrees, counter-clockwise")

    def apply(self, light: Images, examples: NDArray[np.int64]) -> Images:
        import numpy as np

        turned, pixels = np.zeros_like(light), light.reshape(*light.shape[:2], -1)
        for source, weight in _neighbours(light.shape[2], light.shape[3], self.angle):
            turned += (pixels[..., source] * weight).reshape(light.shape)
        return turned


@lru_cache(maxsize=8)
def _neighbours(height: int, width: int, angle: float) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Return for each pixel of a rotated image [H·W] the indices of four source pixels and their weights."""
    import numpy as np

    middle = np.array([height - 1, width - 1])[:, None] / 2
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    rotation = np.array([[cosine, sine], [-sine, cosine]])
    place = rotation @ (np.indices((height, width)).reshape(2, -1) - middle) + middle
    most = np.array([height - 1, width - 1])[:, None]
    inside = ((place > -ROUNDING) & (place < most + ROUNDING)).all(0)
    first = np.clip(np.floor(place + ROUNDING).astype(np.int64), 0, most)
    part = np.clip(place - first, 0, 1)
    found = []
    for down, right in np.ndindex(2, 2):
        row, column = np.minimum(first + np.array([[down], [right]]), most)
        share = np.where([[down], [right]], part, 1 - part).prod(0)
        found.append((row * width + column, (share * inside).astype(np.float32)))
    return found


class Noisy(Shift, name="noisy"):
    """Normal noise is added to every pixel of every channel, from 0 to 1, and the sum is clipped to 0 and 1.

    An image has the same noise whenever it is read: a function of the seed, the split and the image's index.
    """

    deviation: float = setting(0.3, min=0, doc="standard deviation of the noise")
    seed: int = setting(0, min=0, doc="seed of the noise")

    def apply(self, light: Images, examples: NDArray[np.int64]) -> Images:
        import numpy as np

        noise = np.empty_like(light)
        for image, numbers in zip(noise, examples.tolist(), strict=True):
            np.random.default_rng((self.seed, *numbers)).standard_normal(dtype=np.float32, out=image)
        return np.clip(light + np.float32(self.deviation) * noise, 0, 1)


@dataclass(frozen=True)
class Shifted(OnDisk):
    """Images, each with the task that it belongs to. Images of a task without a shift stay unchanged.

    Images in memory enter the digest by value if `exact`, else by shape. `examples` [N, 2] seed the noise of each.
    """

    images: OnDisk | NDArray[np.float32]
    exact: bool
    scale: Scale
    shifts: Mapping[str, Shift]  # by task
    tasks: NDArray[np.str_]
    examples: NDArray[np.int64]

    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        import numpy as np

        found = self.images.read(indices) if isinstance(self.images, OnDisk) else self.images[indices]
        read, tasks, examples = np.array(found, np.float32), self.tasks[indices], self.examples[indices]
        for task, shift in self.shifts.items():
            rows = tasks == task
            if rows.any():
                light = self.scale.light(found[rows])
                read[rows] = self.scale.normalise(shift.apply(light, examples[rows]))
        return read

    def digest(self) -> bytes:
        """Digest the images and their shifts, but not the shifted images, whose last bits differ between machines."""
        import numpy as np

        plan = {task: shift.plain() for task, shift in sorted(self.shifts.items())}
        if isinstance(self.images, OnDisk):
            whole = sha256(self.images.digest())
        else:
            little = np.ascontiguousarray(self.images, "<f4")
            whole = sha256(sha256(little.data if self.exact else str(little.shape).encode()).digest())
        whole.update(json.dumps([plan, self.tasks.tolist()]).encode())
        whole.update(np.ascontiguousarray(self.examples, "<i8").data)
        return whole.digest()

    def find_unreadable(self) -> list[Diagnostic]:
        return self.images.find_unreadable() if isinstance(self.images, OnDisk) else []
