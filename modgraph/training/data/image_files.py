"""Images on disk, read when they are asked for."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from modgraph.diagnostics import ModgraphError
from modgraph.training.data.declaration import OnDisk
from modgraph.training.errors import BadDataFile

UNREADABLE = (OSError, ValueError, SyntaxError, struct.error, Image.DecompressionBombError)  # of damaged files


@dataclass(frozen=True)
class ImageFiles(OnDisk):
    """Images in colour by their files, all in one size [C, H, W], normalised by channel."""

    paths: NDArray[np.str_]
    shape: tuple[int, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def take(self, places: NDArray[Any]) -> ImageFiles:
        return ImageFiles(self.paths[places], self.shape, self.mean, self.deviation)

    def read(self, places: NDArray[Any] | slice) -> NDArray[np.float32]:
        paths = self.paths[places]
        images = np.empty((len(paths), *self.shape), np.float32)
        for image, path in zip(images, paths, strict=True):
            image[:] = read_image(str(path), self.shape[1], self.shape[2])
        mean, deviation = (np.array(each, np.float32)[:, None, None] for each in (self.mean, self.deviation))
        images -= mean
        images /= deviation
        return images


def read_image(path: str, height: int, width: int) -> NDArray[np.float32]:
    """The colours of a file in this size, [3, H, W] from 0 to 1. Raises `ModgraphError`."""
    try:
        with Image.open(path) as image:
            resized = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error) or "it is damaged"
        way_out = "repair the image or take it out of its folder"
        raise ModgraphError([BadDataFile(path=path, reason=reason, way_out=way_out)]) from error
    colours: NDArray[np.float32] = np.asarray(resized, np.float32).transpose(2, 0, 1) / np.float32(255)
    return colours
