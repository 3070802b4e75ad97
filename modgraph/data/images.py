"""Images in the size and the channels that a spec declares: in memory, or in files that are read when needed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.data.declaration import OnDisk, Scale
from modgraph.data.errors import bad_file, does_not_fit
from modgraph.data.files import read_data, reading
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.extras import require
from modgraph.files import explain_error, open_file
from modgraph.ir import Graph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG")  # Pillow reads others by starting programs
PIXELS = 2**26  # of an image, 268 MB in colour
MOST_UNPACKED = 8 * 1032  # the largest ratio of one-bit pixels to bytes of PNG; that of JPEG is lower
LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue (ITU-R BT.601)
PAPER = "white"  # behind transparent pixels
WAY_OUT = "repair the image or remove it"


def find_shape_of_images(graph: Graph, channels: int | None) -> tuple[int, int, int]:
    """Return channels, height and width of the input `image`. Without `channels`, for grey images: one channel, or
    three equal ones. Raises `ModgraphError` if it cannot hold these images."""
    type_ = graph.input_types.get("image")
    if channels is None:
        channels = 3 if type_ is not None and type_.dimensions[:1] == (3,) else 1
    if type_ is not None and type_.dtype == "float":
        match type_.dimensions:
            case (int(found), int(height), int(width)) if found == channels:
                return found, height, width
    given = "no such input" if type_ is None else str(type_)
    reason = f'the input "image" must be float[{channels}, height, width], not {given}'
    raise does_not_fit(reason, f"declare: input image: float[{channels}, HEIGHT, WIDTH]")


def describe_images(
    classes: Iterable[str], words: str, scale: Scale | None = None, places: Sequence[Sequence[float]] = ()
) -> dict[str, Any]:
    """Return the description of a data set of images on a `scale`, which says whether they are grey; without one, of
    grey light from 0 for black to 1 for white on a dark ground. `places` are the boxes of several objects: left, top,
    width, height, as shares of an image. The description has words for people and facts for programs."""
    how: dict[str, Any] = {"words": words, "channels": "grey" if scale is None or scale.is_grey else "red, green, blue"}
    how |= {"ground": "dark"} if scale is None else {"mean": list(scale.mean), "deviation": list(scale.deviation)}
    how |= {"places": [list(each) for each in places]} if places else {}
    return {"classes": {"label": list(classes)}, "preprocessing": {"image": how}}


def resize(images: NDArray[Any], size: tuple[int, ...]) -> NDArray[np.float32]:
    """Resize images [count, height, width] from 0 to 1, bilinear with anti-aliasing."""
    import numpy as np
    import torch  # at use: a recipe is read without
    from torch.nn.functional import interpolate

    batch = torch.from_numpy(np.asarray(images, np.float32)).unsqueeze(1)
    smooth = interpolate(batch, size=size, mode="bilinear", antialias=True)
    result: NDArray[np.float32] = smooth.squeeze(1).clamp(0, 1).numpy()
    return result


@dataclass(frozen=True)
class StoredImages(OnDisk):
    """Images as bytes [count, channels, height, width], resized to `shape`. Grey ones are repeated in every channel."""

    pixels: NDArray[np.uint8]
    scale: Scale

    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        import numpy as np

        light = self.pixels[indices].astype(np.float32) / np.float32(255)
        count, channels, *size = light.shape
        if size != [*self.shape[1:]]:
            planes = resize(light.reshape(-1, *size), self.shape[1:])
            light = planes.reshape(count, channels, *self.shape[1:])
        whole = np.broadcast_to(light, (count, *self.shape))
        return np.ascontiguousarray(self.scale.normalise(whole))

    def digest(self) -> bytes:
        import numpy as np

        return sha256(np.ascontiguousarray(self.pixels).data).digest()


@dataclass(frozen=True)
class ImageFiles(OnDisk):
    """Images by their files, in one size [C, H, W], standardised by channel; grey where C is 1."""

    paths: NDArray[np.str_]
    scale: Scale

    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        import numpy as np

        paths = self.paths[indices]
        images = np.empty((len(paths), *self.shape), np.float32)
        for image, path in zip(images, paths, strict=True):
            colours = read_image(str(path), self.shape[1], self.shape[2])
            image[:] = grey_of(colours) if self.shape[0] == 1 else colours
        return self.scale.normalise(images)

    def digest(self) -> bytes:
        whole = sha256()
        for path in map(str, self.paths):
            content = read_data(path, WAY_OUT)
            whole.update(sha256(Path(path).name.encode("utf-8", "surrogateescape")).digest())
            whole.update(sha256(content).digest())
        return whole.digest()

    def find_unreadable(self) -> list[Diagnostic]:
        found: list[Diagnostic] = []
        for path in dict.fromkeys(map(str, self.paths)):  # tasks may share images
            try:
                with _load_image(path):
                    pass
            except ModgraphError as error:
                found += error.diagnostics
        return found


def grey_of(colours: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the luminance [1, H, W] of an image [3, H, W]."""
    import numpy as np

    return np.tensordot(np.array(LUMINANCE, np.float32), colours, 1)[None]


def read_image(path: str, height: int, width: int) -> NDArray[np.float32]:
    """Read the colours of a file in this size, [3, H, W] from 0 to 1, transparent ones over white. Raises
    `ModgraphError`."""
    import numpy as np

    with _load_image(path) as image:
        from PIL import Image

        deep = image.mode.startswith("I")  # grey of 16 bits, which Pillow would clip at 255
        whole = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)) if deep else image
        if "A" in whole.getbands() or "transparency" in whole.info:
            seen = whole.convert("RGBA")
            whole = Image.alpha_composite(Image.new("RGBA", seen.size, PAPER), seen)
        coloured = whole if whole.mode == "RGB" else whole.convert("RGB")
        small = coloured.resize((width, height), Image.Resampling.BILINEAR)
    colours: NDArray[np.float32] = np.asarray(small, np.float32).transpose(2, 0, 1) / np.float32(255)
    return colours


@contextmanager
def _load_image(path: str) -> Iterator[Image]:
    """Decode an image. Raises `ModgraphError`, also for what fails within this context."""
    require("images", "reading images")
    from PIL import Image, UnidentifiedImageError

    try:
        with reading(path, WAY_OUT), warnings.catch_warnings(), open_file(path) as file:
            warnings.simplefilter("ignore")  # errors are reported, oddities are read
            try:
                opened = Image.open(file, formats=FORMATS)
            except UnidentifiedImageError as error:
                raise ValueError(f"it is no {' and no '.join(FORMATS)}, or is damaged") from error
            with opened as image:
                most = min(PIXELS, MOST_UNPACKED * os.fstat(file.fileno()).st_size)
                if image.width * image.height > most:
                    pixels = f"{image.width:,} × {image.height:,} pixels"
                    raise ValueError(f"its header has {pixels}; a file of this size may have {most:,}")
                image.load()
                if image.mode == "P" and image.palette is None:
                    raise ValueError("it has no palette for its colours")
                yield image
    except (SyntaxError, Image.DecompressionBombError) as error:  # other exceptions of Pillow
        raise bad_file(path, explain_error(error), WAY_OUT) from error
