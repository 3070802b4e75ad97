"""Images on disk, read when they are asked for."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import OnDisk
from modgraph.data.errors import BadDataFile
from modgraph.data.reading import read_data, reading
from modgraph.diagnostics import ModgraphError
from modgraph.files import open_file, reason_of

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("JPEG", "PNG")  # Pillow knows others that start programs
PIXELS = 2**26  # of an image, 268 MB in colour
MOST_UNPACKED = 8 * 1032  # pixels of one bit that one byte of PNG can stand for; one of JPEG stands for less
WAY_OUT = "repair the image or take it out of its folder"


@dataclass(frozen=True)
class ImageFiles(OnDisk):
    """Images in colour by their files, all in one size [C, H, W], normalised by channel."""

    paths: NDArray[np.str_]
    shape: tuple[int, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def take(self, indices: NDArray[Any]) -> ImageFiles:
        return ImageFiles(self.paths[indices], self.shape, self.mean, self.deviation)

    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        paths = self.paths[indices]
        images = np.empty((len(paths), *self.shape), np.float32)
        for image, path in zip(images, paths, strict=True):
            image[:] = read_image(str(path), self.shape[1], self.shape[2])
        mean, deviation = (np.array(each, np.float32)[:, None, None] for each in (self.mean, self.deviation))
        images -= mean
        images /= deviation
        return images

    def digest(self) -> bytes:
        whole = sha256()
        for path in map(str, self.paths):
            content = read_data(path, WAY_OUT)
            whole.update(sha256(Path(path).name.encode("utf-8", "surrogateescape")).digest())
            whole.update(sha256(content).digest())
        return whole.digest()


def read_image(path: str, height: int, width: int) -> NDArray[np.float32]:
    """The colours of a file in this size, [3, H, W] from 0 to 1. Raises `ModgraphError`."""
    from PIL import Image

    try:
        with reading(path, WAY_OUT), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong is told, what is odd is read
            with _opened(path) as image:
                resized = _in_colour(image).resize((width, height), Image.Resampling.BILINEAR)
    except (SyntaxError, Image.DecompressionBombError) as error:  # what Pillow raises besides
        reason = reason_of(error)
        raise ModgraphError([BadDataFile(path=path, reason=reason, way_out=WAY_OUT)]) from error
    colours: NDArray[np.float32] = np.asarray(resized, np.float32).transpose(2, 0, 1) / np.float32(255)
    return colours


@contextmanager
def _opened(path: str) -> Iterator[Image.Image]:
    """An image whose pixels are not read yet. Raises `ValueError` where they are too many, and what Pillow raises."""
    from PIL import Image, UnidentifiedImageError

    with open_file(path) as file:
        try:
            opened = Image.open(file, formats=FORMATS)
        except UnidentifiedImageError as error:
            raise ValueError(f"it is no {' and no '.join(FORMATS)}, or is damaged") from error
        with opened as image:
            most = min(PIXELS, MOST_UNPACKED * os.fstat(file.fileno()).st_size)
            if image.width * image.height > most:
                pixels = f"{image.width:,} × {image.height:,} pixels"
                raise ValueError(f"its header means {pixels}; a file of this size may have {most:,}")
            yield image


def _in_colour(image: Image.Image) -> Image.Image:
    """An image in RGB. Raises `ValueError` and what Pillow raises."""
    image.load()
    if image.mode == "P" and image.palette is None:
        raise ValueError("it has no palette for its colours")
    if image.mode.startswith("I"):  # grey of 16 bits, which Pillow would cut off at 255
        from PIL import Image

        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image if image.mode == "RGB" else image.convert("RGB")
