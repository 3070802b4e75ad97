"""CIFAR-10 from the user's disk: the binary files of cifar-10-binary.tar.gz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check
from modgraph.data.reading import reading
from modgraph.declare import setting
from modgraph.files import read_file
from modgraph.ir import Graph

CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()
TRAIN_FILES = tuple(f"data_batch_{batch}.bin" for batch in range(1, 6))
TEST_FILES = ("test_batch.bin",)
SHAPE = (3, 32, 32)
RECORD = 1 + 3 * 32 * 32  # a byte for the label, then the channels red, green, blue, each row by row
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of the training images' channels, from 0 to 1


class Cifar10(DataSet):
    """`image`: float[3, 32, 32], each channel less its mean and divided by its deviation; `label`: class[10]."""

    name = "cifar10"

    folder: str = setting(path=True, doc="where data_batch_1.bin to data_batch_5.bin and test_batch.bin are")
    limit: int | None = setting(None, min=1, doc="learn from so many images only, the first")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        records = {TRAIN: self._records(TRAIN_FILES)[: self.limit], "test": self._records(TEST_FILES)}
        return {split: check(_arrays(found), graph, split) for split, found in records.items()}

    def description(self) -> dict[str, Any]:
        words = {"values": "from 0 to 1, less the mean, divided by the deviation", "channels": "red, green, blue"}
        numbers = {"mean": list(MEAN), "deviation": list(DEVIATION)}
        return {"classes": {"label": CLASSES}, "preprocessing": {"image": {**words, **numbers}}}

    def _records(self, names: tuple[str, ...]) -> NDArray[np.uint8]:
        return np.concatenate([read_records(str(Path(self.folder) / name)) for name in names])


def read_records(path: str) -> NDArray[np.uint8]:
    """The records of one file, [images, 3073]. Raises `ModgraphError`."""
    with reading(path, "data.folder is the folder cifar-10-batches-bin of cifar-10-binary.tar.gz"):
        content = read_file(path)
        if (reason := _problem(content)) is not None:
            raise ValueError(reason)
    return np.frombuffer(content, np.uint8).reshape(-1, RECORD)


def _problem(content: bytes) -> str | None:
    if not content or len(content) % RECORD:
        return f"it has {len(content)} bytes; images of CIFAR-10 have {RECORD} each, their label included"
    labels = np.frombuffer(content, np.uint8)[::RECORD]
    wrong = np.flatnonzero(labels >= len(CLASSES))
    return f"image {wrong[0]} has the label {labels[wrong[0]]}, and CIFAR-10 has 0 to 9" if len(wrong) else None


def _arrays(records: NDArray[np.uint8]) -> Arrays:
    image = records[:, 1:].reshape(-1, *SHAPE).astype(np.float32) / 255
    image -= np.array(MEAN, np.float32)[:, None, None]
    image /= np.array(DEVIATION, np.float32)[:, None, None]
    return Arrays({"image": image, "label": records[:, 0]})
