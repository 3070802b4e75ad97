"""CIFAR-10 and CIFAR-100 from the user's disk: binary files of records, one byte for each label, then an image's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import TRAIN, Arrays, DataSet, Scale, check
from modgraph.data.image_arrays import StoredImages, shape_of_images
from modgraph.data.preprocessing import of_images
from modgraph.data.reading import reading
from modgraph.declare import setting
from modgraph.files import read_file
from modgraph.ir import Graph

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


CIFAR10_CLASSES = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
CIFAR10 = Records("CIFAR-10", "cifar-10-binary.tar.gz", "cifar-10-batches-bin", (CIFAR10_CLASSES,))
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
        return {"classes": {"label": list(CIFAR10_CLASSES)}, "preprocessing": {"image": made}}

    def _records(self, names: tuple[str, ...]) -> NDArray[np.uint8]:
        return np.concatenate([CIFAR10.read(str(Path(self.folder) / name)) for name in names])


def _arrays(records: NDArray[np.uint8]) -> Arrays:
    image = records[:, 1:].reshape(-1, *SHAPE).astype(np.float32) / 255
    image -= np.array(SCALE.mean, np.float32)[:, None, None]
    image /= np.array(SCALE.deviation, np.float32)[:, None, None]
    return Arrays({"image": image, "label": records[:, 0]})


COARSE = tuple(
    "aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices "
    "household_furniture insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes "
    "large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people reptiles small_mammals trees "
    "vehicles_1 vehicles_2".split()
)
FINE = tuple(
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can "
    "castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin "
    "elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster "
    "man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck "
    "pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk "
    "skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger "
    "tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm".split()
)
CIFAR100 = Records("CIFAR-100", "cifar-100-binary.tar.gz", "cifar-100-binary", (COARSE, FINE))
LABELS = {"coarse": COARSE, "fine": FINE}


class Cifar100(DataSet):
    """`image` in the size that the spec wants, `label`: class[100], or class[20] of the coarse labels.

    Each channel is less its mean and divided by its deviation. The grouping `superclass` is the coarse label's name.
    """

    name = "cifar100"

    folder: str = setting(path=True, doc="where train.bin and test.bin are")
    labels: str = setting("fine", choices=("fine", "coarse"), doc="which of an image's two labels is to be told")
    limit: int | None = setting(None, min=1, doc="learn from so many images only, the first")
    test_limit: int | None = setting(None, min=1, doc="test on so many images only, the first")
    mean: tuple[float, ...] = setting((0.5071, 0.4865, 0.4409), doc="subtracted from red, green and blue")
    deviation: tuple[float, ...] = setting((0.2673, 0.2564, 0.2762), min=1e-6, doc="by which they are divided then")

    def contradiction(self) -> str | None:
        return self.scale().not_of_colours()

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        shape = shape_of_images(graph, channels=3)
        records = {TRAIN: self._records("train.bin", self.limit), "test": self._records("test.bin", self.test_limit)}
        return {split: check(self._arrays(found, shape), graph, split) for split, found in records.items()}

    def scale(self) -> Scale:
        return Scale(self.mean, self.deviation)

    def description(self) -> dict[str, Any]:
        words = "red, green and blue from 0 to 1, less the mean, divided by the deviation"
        made = of_images(words, "red, green, blue", self.scale())
        return {"classes": {"label": list(LABELS[self.labels])}, "preprocessing": {"image": made}}

    def _records(self, file: str, limit: int | None) -> NDArray[np.uint8]:
        return CIFAR100.read(str(Path(self.folder) / file))[:limit]

    def _arrays(self, records: NDArray[np.uint8], shape: tuple[int, ...]) -> Arrays:
        label = records[:, list(LABELS).index(self.labels)]
        images = StoredImages(records[:, len(LABELS) :].reshape(-1, *SHAPE), shape, self.scale())
        return Arrays({"label": label}, {"superclass": np.array(COARSE)[records[:, 0]]}, {"image": images})
