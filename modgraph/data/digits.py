"""Handwritten digits: plain; rotated, with a domain for each angle, after RotatedMNIST in DomainBed (Gulrajani and
Lopez-Paz, ICLR 2021); two on a canvas, the min-max digit game (Hu et al., ICLR 2024, 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modgraph.data.declaration import HELD_OUT, TRAIN, Arrays, DataSet, check, check_splits, shuffle
from modgraph.data.errors import bad_file
from modgraph.data.fashion_mnist import read_images
from modgraph.data.files import find_file_of_extra
from modgraph.data.images import describe_images, find_shape_of_images, resize
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.recipes.errors import MissingKey

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Images = tuple[NDArray[np.float32], NDArray[np.int64]]  # [count, height, width] from 0 to 1, and labels [count]


ANGLES = (0, 15, 30, 45, 60, 75)
SIDE = 14  # pixels of a digit; the canvas has twice as many
TRAIN_PAIRS = "13 37 78 38 02 05 15 89 36 17 35 14 04 16 58 28 48 59 24 69 34 12 68 25 79 67 39 29 26 57 "
TRAIN_PAIRS += "00 11 22 33 44 55 66 77 88 99"
CORNERS = ((0, 0, 0.5, 0.5), (0.5, 0.5, 0.5, 0.5))  # of the canvas, with the digits
TEST_PAIRS = "49 03 01 06 18 08 45 09 46 56 07 23 27 47 19"


class Digits(DataSet, name="digits"):
    """scikit-learn's 1,797 handwritten digits of 8 × 8, as `image` in the size that the spec declares, and `label`.

    They can replace data that are not available: with three channels, an image is grey.
    """

    exact = False

    test_fraction: float = setting(0.2, min=0.01, max=0.9, doc="share of the images for the test")
    limit: int | None = setting(None, min=1, doc="train on so many images only")
    seed: int = setting(0, min=0, doc="seed of the split")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        import numpy as np

        channels, *size = find_shape_of_images(graph, channels=None)
        images, labels = load_digits(size)
        arrays = check(Arrays({"image": images[:, None].repeat(channels, 1), "label": labels}), graph, "the data")
        order = np.random.default_rng((self.seed, 0)).permutation(len(arrays))
        kept = round(self.test_fraction * len(arrays))
        return {TRAIN: arrays.take(order[kept:][: self.limit]), "test": arrays.take(order[:kept])}

    def extras(self) -> tuple[str, ...]:
        return ("digits",)

    def description(self) -> dict[str, Any]:
        return describe_images("0123456789", "a handwritten digit, ink 1, paper 0, the same in every channel")


class RotatedDigits(DataSet, name="rotated_digits"):
    """scikit-learn's handwritten digits at six angles, in the size of the spec's images.

    Each domain has a sixth of the images, and no image is in two. Domains that are held out are the test.
    """

    exact = False

    held_out: int | tuple[int, ...] = setting(75, doc="the angle, or the angles, held out for the test")
    images: int = setting(1797, min=6, max=1797, doc="number of digits in all")
    seed: int = setting(0, min=0, doc="seed of the assignment of digits to domains")

    def contradiction(self) -> str | None:
        unknown = sorted(self._list_test_angles() - set(ANGLES))
        if unknown:
            return f"holds out {unknown[0]}; the domains are {', '.join(map(str, ANGLES))}"
        return "holds out every domain" if self._list_test_angles() == set(ANGLES) else None

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        import numpy as np

        images, labels = load_digits(find_shape_of_images(graph, channels=1)[1:])
        order = np.random.default_rng((self.seed, 0)).permutation(len(labels))[: self.images]
        images, labels, test_angles, splits = images[order], labels[order], self._list_test_angles(), {}
        for split, angles in ((TRAIN, sorted(set(ANGLES) - test_angles)), (HELD_OUT, sorted(test_angles))):
            if angles:
                parts = [(slice(ANGLES.index(angle), None, len(ANGLES)), angle) for angle in angles]
                image = np.concatenate([rotate_images(images[part], angle)[:, None] for part, angle in parts])
                label = np.concatenate([labels[part] for part, _ in parts])
                words = np.concatenate([np.full(len(labels[part]), str(angle)) for part, angle in parts])
                splits[split] = shuffle(Arrays({"image": image, "label": label}, {"domain": words}), self.seed)
        return check_splits(splits, graph)

    def extras(self) -> tuple[str, ...]:
        return ("digits",)

    def description(self) -> dict[str, Any]:
        return describe_images("0123456789", "a digit, ink 1, paper 0, turned counter-clockwise about the middle")

    def _list_test_angles(self) -> set[int]:
        return set(self.held_out) if isinstance(self.held_out, tuple) else {self.held_out}


class MinMaxDigits(DataSet, name="min_max_digits"):
    """Two handwritten digits, top left and bottom right of a 28 × 28 canvas; 40 pairs for training, 15 unseen.

    The label is one of the digits, or for the task `parity` whether that digit has an odd number of ones in binary.
    """

    exact = False

    source: str = setting("digits", choices=("digits", "idx"), doc="scikit-learn's digits, or MNIST's IDX files")
    images: str | None = setting(None, path=True, doc="IDX file of images")
    labels: str | None = setting(None, path=True, doc="IDX file of labels")
    task: str = setting("min_max", choices=("min_max", "parity"), doc="the property of a digit that the label gives")
    train: int = setting(20_000, min=1, max=10_000_000, doc="number of training compositions")
    labelled: int | None = setting(None, min=1, doc="train on so many of the compositions only")
    labelled_seed: int = setting(0, min=0, doc="seed of that subset")
    in_distribution: int = setting(
        4_000, min=1, max=10_000_000, doc="number of test compositions of the training pairs"
    )
    per_test_pair: int = setting(200, min=1, max=1_000_000, doc="number of test compositions of each unseen pair")
    test_fraction: float = setting(0.2, min=0.01, max=0.9, doc="share of the digit images for the tests")
    seed: int = setting(0, min=0, doc="seed of the split and of the compositions")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        import numpy as np

        if self.source == "digits":
            images, labels = load_digits((SIDE, SIDE))
        elif self.images is None or self.labels is None:
            meaning = "the IDX files to read (source is idx)"
            raise ModgraphError([MissingKey(section="data", key="images and labels", meaning=meaning)])
        else:
            pixels, digits = read_images(self.images, self.labels, classes=10)
            images, labels = resize(pixels / 255, (SIDE, SIDE)), digits.astype(np.int64)
        order = np.random.default_rng((self.seed, 0)).permutation(len(labels))
        kept = round(self.test_fraction * len(labels))
        test = images[order[:kept]], labels[order[:kept]]
        train = images[order[kept:]], labels[order[kept:]]
        seen, unseen = parse_pairs(TRAIN_PAIRS), parse_pairs(TEST_PAIRS)
        composed = {
            TRAIN: self._compose(train, seen, self.train, 1),
            "in_distribution": self._compose(test, seen, self.in_distribution, 2),
            "out_of_distribution": self._compose(test, unseen, self.per_test_pair * len(unseen), 3),
        }
        if self.labelled is not None:
            rows = np.random.default_rng((self.seed, 4, self.labelled_seed)).permutation(self.train)[: self.labelled]
            composed[TRAIN] = composed[TRAIN].take(rows)
        return check_splits(composed, graph)

    def extras(self) -> tuple[str, ...]:
        return ("digits",) if self.source == "digits" else ()

    def files(self) -> tuple[str, ...]:
        return tuple(path for path in (self.images, self.labels) if path is not None and self.source == "idx")

    def description(self) -> dict[str, Any]:
        digits = "two 14 × 14 digits, top left and bottom right of a black 28 × 28 canvas, ink 1, paper 0"
        return describe_images(("even", "odd") if self.task == "parity" else "0123456789", digits, places=CORNERS)

    def _compose(self, digits: Images, pairs: NDArray[np.int64], count: int, stream: int) -> Arrays:
        """Compose pairs in rotation, each with digit images, order and label: image [count, 1, 28, 28]."""
        import numpy as np

        rng = np.random.default_rng((self.seed, stream))
        images, labels = digits
        ordered = rng.permuted(pairs[np.arange(count) % len(pairs)], axis=1)
        canvas = np.zeros((count, 1, 2 * SIDE, 2 * SIDE), np.float32)
        for index, digit in np.ndindex(2, 10):
            corner = slice(index * SIDE, (index + 1) * SIDE)
            here, pool = np.flatnonzero(ordered[:, index] == digit), np.flatnonzero(labels == digit)
            if len(here):
                if not len(pool):
                    raise bad_file(self.images or self.source, f"there is no image of a {digit} in it")
                canvas[here, 0, corner, corner] = images[rng.choice(pool, len(here))]
        asked = label_of(ordered[:, 0], ordered[:, 1])
        odd = np.array([digit.bit_count() % 2 for digit in range(10)])
        label = odd[asked] if self.task == "parity" else asked
        names = np.array([f"{a},{b}" for a, b in np.sort(ordered, axis=1)])
        return Arrays({"image": canvas, "label": label}, {"composition": names})


def rotate_images(images: NDArray[np.float32], angle: float) -> NDArray[np.float32]:
    """Rotate images [count, height, width] counter-clockwise by degrees; new corners are black."""
    from scipy.ndimage import rotate

    turned: NDArray[np.float32] = rotate(images, angle, axes=(2, 1), reshape=False, order=1)
    return turned


def parse_pairs(text: str) -> NDArray[np.int64]:
    """Parse unordered pairs of digits, [P, 2]."""
    import numpy as np

    return np.array([[int(digit) for digit in pair] for pair in text.split()])


def label_of(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the larger digit if the two sum to less than ten, else the smaller."""
    import numpy as np

    label: NDArray[Any] = np.where(first + second < 10, np.maximum(first, second), np.minimum(first, second))
    return label


def load_digits(size: Sequence[int]) -> Images:
    """Load scikit-learn's images [count, height, width] from 0 to 1 in a size, and their labels [count]."""
    import numpy as np

    path = "sklearn/datasets/data/digits.csv.gz"  # read as a file: importing the package takes as long as torch
    rows = np.loadtxt(find_file_of_extra("digits", path, "scikit-learn's digits"), delimiter=",")
    return resize(rows[:, :-1].reshape(-1, 8, 8) / 16, (size[0], size[1])), rows[:, -1].astype(np.int64)
