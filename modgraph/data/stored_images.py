"""Images that are kept as bytes in memory, and made numbers of a size and scale when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import OnDisk, Scale
from modgraph.data.resize import resized


@dataclass(frozen=True)
class StoredImages(OnDisk):
    """Images by their bytes [count, channels, height, width], smoothly in the size of `shape` where they have another;
    grey ones are the same in every channel of it."""

    pixels: NDArray[np.uint8]
    shape: tuple[int, ...]
    scale: Scale

    def take(self, indices: NDArray[Any]) -> StoredImages:
        return replace(self, pixels=self.pixels[indices])

    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        light = self.pixels[indices].astype(np.float32) / np.float32(255)
        count, channels, *size = light.shape
        if size != [*self.shape[1:]]:
            planes = resized(light.reshape(-1, *size), (self.shape[1], self.shape[2]))
            light = planes.reshape(count, channels, *self.shape[1:])
        whole = np.broadcast_to(light, (count, *self.shape))
        return np.ascontiguousarray(self.scale.scaled(whole))

    def digest(self) -> bytes:
        return sha256(np.ascontiguousarray(self.pixels).data).digest()
