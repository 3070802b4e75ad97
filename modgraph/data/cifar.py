"""The binary files of CIFAR-10 and CIFAR-100: records of one byte for each label, then an image's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modgraph.data.reading import reading
from modgraph.files import read_file

SHAPE = (3, 32, 32)  # the channels red, green, blue, each row by row
PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Records:
    """What a record is in the files of one of the two: `classes` has a name for each value of each of its labels."""

    title: str
    archive: str
    folder: str
    classes: tuple[tuple[str, ...], ...]

    @property
    def size(self) -> int:
        return len(self.classes) + PIXELS

    def read(self, path: str) -> NDArray[np.uint8]:
        """The records of one file, [images, labels and pixels]. Raises `ModgraphError`."""
        with reading(path, f"data.folder is the folder {self.folder} of {self.archive}"):
            content = read_file(path)
            if (reason := self._problem(content)) is not None:
                raise ValueError(reason)
        return np.frombuffer(content, np.uint8).reshape(-1, self.size)

    def _problem(self, content: bytes) -> str | None:
        labels = "label" if len(self.classes) == 1 else "labels"
        if not content or len(content) % self.size:
            return f"it has {len(content)} bytes; images of {self.title} have {self.size} each, their {labels} included"
        records = np.frombuffer(content, np.uint8).reshape(-1, self.size)
        for at, names in enumerate(self.classes):
            wrong = np.flatnonzero(records[:, at] >= len(names))
            if len(wrong):
                label = records[wrong[0], at]
                return f"image {wrong[0]} has the label {label}, and {self.title} has 0 to {len(names) - 1}"
        return None
