"""CIFAR-10 and CIFAR-100 from the user's disk: binary files of records, a byte for each label, then the image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.data.declaration import TRAIN, Arrays, DataSet, Scale, check_splits
from modgraph.data.files import reading
from modgraph.data.images import StoredImages, describe_images, find_shape_of_images
from modgraph.declare import setting
from modgraph.files import read_file
from modgraph.ir import Graph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHAPE = (3, 32, 32)  # the channels red, green, blue, each row by row
PREPARED = "red, green and blue from 0 to 1, less the mean, divided by the deviation"
TEN = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
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


@dataclass(frozen=True)
class Records:
    """The records of one of the two data sets. `classes` has the names of the classes of each label."""

    title: str
    source: str
    classes: tuple[tuple[str, ...], ...]

    def read(self, path: str) -> NDArray[np.uint8]:
        """Read the records of one file, [images, labels and pixels]. Raises `ModgraphError`."""
        import numpy as np

        size, labels = len(self.classes) + 3 * 32 * 32, "label" if len(self.classes) == 1 else "labels"
        with reading(path, f"data.folder is {self.source}"):
            content = read_file(path)
            if not content or len(content) % size:
                expected = f"images of {self.title} have {size} each, their {labels} included"
                raise ValueError(f"it has {len(content)} bytes; {expected}")
            records = np.frombuffer(content, np.uint8).reshape(-1, size)
            for label, names in zip(records.T, self.classes, strict=False):
                for image in np.flatnonzero(label >= len(names))[:1]:
                    allowed = f"and {self.title} has 0 to {len(names) - 1}"
                    raise ValueError(f"image {image} has the label {label[image]}, {allowed}")
        return records

    def read_all(self, folder: str, *names: str) -> NDArray[np.uint8]:
        """Read the records of several files. Raises `ModgraphError`."""
        import numpy as np

        return np.concatenate([self.read(str(Path(folder) / name)) for name in names])


CIFAR10 = Records("CIFAR-10", "the folder cifar-10-batches-bin of cifar-10-binary.tar.gz", (TEN,))
CIFAR100 = Records("CIFAR-100", "the folder cifar-100-binary of cifar-100-binary.tar.gz", (COARSE, FINE))


class Cifar10(DataSet, name="cifar10"):
    """`image`: float[3, 32, 32], each channel minus its mean, divided by its deviation; `label`: class[10]."""

    folder: str = setting(path=True, doc="folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin")
    limit: int | None = setting(None, min=1, doc="train on so many images only, the first ones")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        import numpy as np

        train = CIFAR10.read_all(self.folder, *(f"data_batch_{batch}.bin" for batch in range(1, 6)))
        records = {TRAIN: train[: self.limit], "test": CIFAR10.read_all(self.folder, "test_batch.bin")}
        pixels = {split: found[:, 1:].reshape(-1, *SHAPE).astype(np.float32) for split, found in records.items()}
        images = {split: self.scale().normalise(each / np.float32(255)) for split, each in pixels.items()}
        made = {split: Arrays({"image": images[split], "label": records[split][:, 0]}) for split in records}
        return check_splits(made, graph)

    def scale(self) -> Scale:
        return Scale((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))  # of the training images' channels

    def description(self) -> dict[str, Any]:
        return describe_images(TEN, PREPARED, self.scale())


class Cifar100(DataSet, name="cifar100"):
    """`image` in the size that the spec declares; `label`: class[100], or class[20] of the coarse labels.

    Each channel is standardised: minus its mean, divided by its deviation. The grouping `superclass` is the coarse
    label's name.
    """

    folder: str = setting(path=True, doc="folder of train.bin and test.bin")
    labels: str = setting("fine", choices=("fine", "coarse"), doc="which of an image's two labels is the target")
    limit: int | None = setting(None, min=1, doc="train on so many images only, the first ones")
    test_limit: int | None = setting(None, min=1, doc="test on so many images only, the first ones")
    mean: tuple[float, ...] = setting((0.5071, 0.4865, 0.4409), doc="subtracted from red, green and blue")
    deviation: tuple[float, ...] = setting((0.2673, 0.2564, 0.2762), min=1e-6, doc="divides the result")

    def contradiction(self) -> str | None:
        return self.scale().not_of_colours()

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        import numpy as np

        shape, at = find_shape_of_images(graph, channels=3), ("coarse", "fine").index(self.labels)
        splits = {}
        for split, limit in ((TRAIN, self.limit), ("test", self.test_limit)):
            records = CIFAR100.read_all(self.folder, f"{split}.bin")[:limit]
            images = StoredImages(shape, records[:, 2:].reshape(-1, *SHAPE), self.scale())
            superclasses = np.array(COARSE)[records[:, 0]]
            splits[split] = Arrays({"label": records[:, at]}, {"superclass": superclasses}, {"image": images})
        return check_splits(splits, graph)

    def description(self) -> dict[str, Any]:
        return describe_images(FINE if self.labels == "fine" else COARSE, PREPARED, self.scale())
