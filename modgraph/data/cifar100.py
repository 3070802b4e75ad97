"""CIFAR-100 from the user's disk: the binary files of cifar-100-binary.tar.gz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.cifar import SHAPE, Records
from modgraph.data.declaration import TRAIN, Arrays, DataSet, Scale, check
from modgraph.data.preprocessing import of_images
from modgraph.data.shape_of_images import shape_of_images
from modgraph.data.stored_images import StoredImages
from modgraph.declare import setting
from modgraph.ir import Graph

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
RECORDS = Records("CIFAR-100", "cifar-100-binary.tar.gz", "cifar-100-binary", (COARSE, FINE))
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
        return RECORDS.read(str(Path(self.folder) / file))[:limit]

    def _arrays(self, records: NDArray[np.uint8], shape: tuple[int, ...]) -> Arrays:
        label = records[:, list(LABELS).index(self.labels)]
        images = StoredImages(records[:, len(LABELS) :].reshape(-1, *SHAPE), shape, self.scale())
        return Arrays({"label": label}, {"superclass": np.array(COARSE)[records[:, 0]]}, {"image": images})
