"""Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017) from the user's disk: the four IDX files of MNIST's format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check
from modgraph.data.errors import BadDataFile
from modgraph.data.idx import read_images
from modgraph.data.preprocessing import of_images
from modgraph.data.shape_of_images import shape_of_grey_images
from modgraph.data.stored_images import StoredImages
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError
from modgraph.files import exists
from modgraph.ir import Graph

CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
DEBIAN = "/usr/share/datasets/fashion-mnist"
WAY_OUT = "install the package dataset-fashion-mnist of Debian, or name the folder of its files: -s data.folder=DIR"


class FashionMnist(DataSet):
    """70,000 images of clothes: `image` in the size that the spec wants, from 0 to 1, grey, and `label`: class[10]."""

    name = "fashion_mnist"

    folder: str = setting(DEBIAN, path=True, doc="where train-images-idx3-ubyte and the other three are, or their .gz")
    limit: int | None = setting(None, min=1, doc="learn from so many images only, the first")
    test_limit: int | None = setting(None, min=1, doc="test on so many images only, the first")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        shape = shape_of_grey_images(graph)
        parts = {TRAIN: ("train", self.limit), "test": ("t10k", self.test_limit)}
        return {split: check(self._arrays(shape, *part), graph, split) for split, part in parts.items()}

    def description(self) -> dict[str, Any]:
        words = "clothes 1, what is behind them 0, the same in every channel"
        made = of_images(words, "grey", ground="dark")
        return {"classes": {"label": list(CLASSES)}, "preprocessing": {"image": made}}

    def _arrays(self, shape: tuple[int, ...], part: str, limit: int | None) -> Arrays:
        images, labels = self._file(f"{part}-images-idx3-ubyte"), self._file(f"{part}-labels-idx1-ubyte")
        pixels, label = read_images(images, labels, len(CLASSES))
        return Arrays(
            {"label": label[:limit]}, on_disk={"image": StoredImages(pixels[:limit, None], shape, self.scale())}
        )

    def _file(self, name: str) -> str:
        """One of the four files, as it is or packed. Raises `ModgraphError`."""
        path = Path(self.folder) / name
        found = next((each for each in (path, path.with_name(f"{name}.gz")) if exists(each)), None)
        if found is None:
            raise ModgraphError(
                [BadDataFile(path=str(path), reason="there is no such file, nor its .gz", way_out=WAY_OUT)]
            )
        return str(found)
