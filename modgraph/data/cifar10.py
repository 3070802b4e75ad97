"""CIFAR-10 from the user's disk: the binary files of cifar-10-binary.tar.gz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.cifar import SHAPE, Records
from modgraph.data.declaration import TRAIN, Arrays, DataSet, Scale, check
from modgraph.data.preprocessing import of_images
from modgraph.declare import setting
from modgraph.ir import Graph

CLASSES = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
RECORDS = Records("CIFAR-10", "cifar-10-binary.tar.gz", "cifar-10-batches-bin", (CLASSES,))
TRAIN_FILES = tuple(f"data_batch_{batch}.bin" for batch in range(1, 6))
TEST_FILES = ("test_batch.bin",)
SCALE = Scale((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))  # of the training images' channels


class Cifar10(DataSet):
    """`image`: float[3, 32, 32], each channel less its mean and divided by its deviation; `label`: class[10]."""

    name = "cifar10"

    folder: str = setting(path=True, doc="where data_batch_1.bin to data_batch_5.bin and test_batch.bin are")
    limit: int | None = setting(None, min=1, doc="learn from so many images only, the first")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        records = {TRAIN: self._records(TRAIN_FILES)[: self.limit], "test": self._records(TEST_FILES)}
        return {split: check(_arrays(found), graph, split) for split, found in records.items()}

    def scale(self) -> Scale:
        return SCALE

    def description(self) -> dict[str, Any]:
        words = "red, green and blue from 0 to 1, less the mean, divided by the deviation"
        made = of_images(words, "red, green, blue", SCALE)
        return {"classes": {"label": list(CLASSES)}, "preprocessing": {"image": made}}

    def _records(self, names: tuple[str, ...]) -> NDArray[np.uint8]:
        return np.concatenate([RECORDS.read(str(Path(self.folder) / name)) for name in names])


def _arrays(records: NDArray[np.uint8]) -> Arrays:
    image = records[:, 1:].reshape(-1, *SHAPE).astype(np.float32) / 255
    image -= np.array(SCALE.mean, np.float32)[:, None, None]
    image /= np.array(SCALE.deviation, np.float32)[:, None, None]
    return Arrays({"image": image, "label": records[:, 0]})
