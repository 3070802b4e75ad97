"""Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017) from the user's disk: the four IDX files of MNIST's format."""

from __future__ import annotations

import gzip
import math
import os
import struct
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modgraph_runtime.files import refuse_beyond_memory

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check_splits
from modgraph.data.errors import bad_file
from modgraph.data.files import reading
from modgraph.data.images import StoredImages, describe_images, find_shape_of_images
from modgraph.declare import setting
from modgraph.files import exists, open_file
from modgraph.ir import Graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_UNPACKED = 1032  # the largest ratio of gzip
CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
DEBIAN = "/usr/share/datasets/fashion-mnist"
WAY_OUT = "install the package dataset-fashion-mnist of Debian, or name the folder of its files: -s data.folder=DIR"


class FashionMnist(DataSet, name="fashion_mnist"):
    """70,000 images of clothes: `image` in the size that the spec declares, from 0 to 1, grey, and `label`:
    class[10]."""

    folder: str = setting(
        DEBIAN, path=True, doc="folder of train-images-idx3-ubyte and the other three files, or their .gz"
    )
    limit: int | None = setting(None, min=1, doc="train on so many images only, the first ones")
    test_limit: int | None = setting(None, min=1, doc="test on so many images only, the first ones")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        shape, splits = find_shape_of_images(graph, channels=None), {}
        for split, part, limit in ((TRAIN, "train", self.limit), ("test", "t10k", self.test_limit)):
            files = self._file(f"{part}-images-idx3-ubyte"), self._file(f"{part}-labels-idx1-ubyte")
            pixels, label = read_images(*files, len(CLASSES))
            images = StoredImages(shape, pixels[:limit, None], self.scale())
            splits[split] = Arrays({"label": label[:limit]}, on_disk={"image": images})
        return check_splits(splits, graph)

    def description(self) -> dict[str, Any]:
        return describe_images(CLASSES, "clothes 1, what is behind them 0, the same in every channel")

    def _file(self, name: str) -> str:
        """Find one of the four files, plain or compressed. Raises `ModgraphError`."""
        path = Path(self.folder) / name
        for each in (path, path.with_name(f"{name}.gz")):
            if exists(each):
                return str(each)
        raise bad_file(str(path), "no such file, nor its .gz", WAY_OUT)


def read_idx(path: str, axes: int) -> NDArray[Any]:
    """Read an array of bytes with a given number of axes, from a plain or gzip file. Raises `ModgraphError`."""
    with reading(path), open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        packed = file.read(2) == b"\x1f\x8b"  # not by its name, which may be a link's
        file.seek(0)
        return _read(gzip.GzipFile(fileobj=file), axes, size * MOST_UNPACKED) if packed else _read(file, axes, size)


def read_images(images: str, labels: str, classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read images [count, height, width] and the class of each [count], as bytes. Raises `ModgraphError`."""
    found, numbers = read_idx(images, 3), read_idx(labels, 1)
    if len(found) != len(numbers) or not len(numbers) or numbers.max() >= classes:
        reason = f"{len(found)} images and {len(numbers)} labels from 0 to {classes - 1} do not go together"
        raise bad_file(images, reason)
    return found, numbers


def _read(file: IO[bytes] | gzip.GzipFile, axes: int, most: int) -> NDArray[Any]:
    """Read an array as long as its header says, from a file of at most `most` bytes. Raises `ValueError` and the
    exceptions of the file."""
    import numpy as np

    start = file.read(4)
    if len(start) < 4 or start[:3] != b"\0\0\x08":
        raise ValueError("it is no IDX file of bytes")
    if start[3] != axes:
        raise ValueError(f"it has {start[3]} axes, not {axes}")
    header = 4 + 4 * axes
    sizes = struct.unpack(f">{axes}I", file.read(4 * axes))
    count = math.prod(sizes)
    if header + count > most:
        raise ValueError(f"it has at most {most:,} bytes, but its header needs {header + count:,}")
    refuse_beyond_memory(count)
    content = file.read(count + 1)  # one byte more: at its end gzip compares its checksum
    if len(content) != count:
        found = "fewer" if len(content) < count else "more"
        raise ValueError(f"it has {found} bytes than the {header + count:,} of its header")
    return np.frombuffer(content, np.uint8).reshape(sizes)
