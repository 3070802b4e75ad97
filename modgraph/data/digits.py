"""scikit-learn's digits in the size of a spec's images, as they are, or turned with a domain for each angle, after
RotatedMNIST in DomainBed (Gulrajani and Lopez-Paz, ICLR 2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import HELD_OUT, TRAIN, Arrays, DataSet, check, mixed
from modgraph.data.images import resized, shape_of_images
from modgraph.data.preprocessing import describe_images
from modgraph.declare import setting
from modgraph.ir import Graph

ANGLES = (0, 15, 30, 45, 60, 75)


class Digits(DataSet):
    """scikit-learn's 1,797 handwritten digits of 8 × 8, as `image` in the size that the spec wants, and `label`.

    Real data for a spec whose own are not at hand: an image of three channels is grey.
    """

    name = "digits"
    exact = False

    test_fraction: float = setting(0.2, min=0.01, max=0.9, doc="share kept for the test")
    limit: int | None = setting(None, min=1, doc="learn from so many images only")
    seed: int = setting(0, min=0, doc="of the split")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        from sklearn.datasets import load_digits

        data = load_digits()
        channels, *size = shape_of_images(graph, channels=None)
        images = resized(data.images / 16, (size[0], size[1]))[:, None].repeat(channels, 1)
        arrays = check(Arrays({"image": images, "label": data.target}), graph, "the data")
        order = np.random.default_rng((self.seed, 0)).permutation(len(arrays))
        kept = round(self.test_fraction * len(arrays))
        return {TRAIN: arrays.take(order[kept:][: self.limit]), "test": arrays.take(order[:kept])}

    def description(self) -> dict[str, Any]:
        return describe_images("0123456789", "a handwritten digit, ink 1, paper 0, the same in every channel")


class RotatedDigits(DataSet):
    """scikit-learn's handwritten digits at six angles, in the size of the spec's images.

    Each domain has a sixth of the images, and no image is in two. Domains that are held out are what is tested on.
    """

    name = "rotated_digits"
    exact = False

    held_out: int | tuple[int, ...] = setting(75, doc="the angle, or the angles, that nothing is learnt from")
    images: int = setting(1797, min=6, max=1797, doc="digits in all")
    seed: int = setting(0, min=0, doc="of which digit is in which domain")

    def contradiction(self) -> str | None:
        unknown = sorted(self._held_out() - set(ANGLES))
        if unknown:
            return f"holds out {unknown[0]}; the domains are {', '.join(map(str, ANGLES))}"
        return "holds out every domain" if self._held_out() == set(ANGLES) else None

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        from sklearn.datasets import load_digits

        size = shape_of_images(graph, channels=1)[1:]
        data = load_digits()
        order = np.random.default_rng((self.seed, 0)).permutation(len(data.target))[: self.images]
        images, labels = resized(data.images[order] / 16, size), data.target[order]
        held, splits = self._held_out(), {}
        for split, angles in ((TRAIN, sorted(set(ANGLES) - held)), (HELD_OUT, sorted(held))):
            if angles:
                parts = [(slice(ANGLES.index(angle), None, len(ANGLES)), angle) for angle in angles]
                image = np.concatenate([rotated(images[part], angle)[:, None] for part, angle in parts])
                label = np.concatenate([labels[part] for part, _ in parts])
                words = np.concatenate([np.full(len(labels[part]), str(angle)) for part, angle in parts])
                arrays = Arrays({"image": image, "label": label}, {"domain": words})
                splits[split] = check(mixed(arrays, self.seed), graph, split)
        return splits

    def description(self) -> dict[str, Any]:
        return describe_images("0123456789", "a digit, ink 1, paper 0, turned counter-clockwise about the middle")

    def _held_out(self) -> set[int]:
        return set(self.held_out) if isinstance(self.held_out, tuple) else {self.held_out}


def rotated(images: NDArray[np.float32], angle: float) -> NDArray[np.float32]:
    """Images [count, height, width] turned counter-clockwise by degrees, black where nothing was."""
    from scipy.ndimage import rotate

    turned: NDArray[np.float32] = rotate(images, angle, axes=(2, 1), reshape=False, order=1)
    return turned
