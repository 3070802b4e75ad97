"""Rotated digits, a domain for each angle, after RotatedMNIST in DomainBed (Gulrajani and Lopez-Paz, ICLR 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check, mixed
from modgraph.data.image_arrays import resized, shape_of_images
from modgraph.data.preprocessing import of_images
from modgraph.declare import setting
from modgraph.ir import Graph

ANGLES = (0, 15, 30, 45, 60, 75)
HELD_OUT = "held_out"


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
        held = self._held_out()
        domains = {angle: _domain(images[i::6], labels[i::6], angle) for i, angle in enumerate(ANGLES)}
        names = {TRAIN: set(ANGLES) - held, HELD_OUT: held}
        splits = {name: _joined([domains[angle] for angle in sorted(each)]) for name, each in names.items() if each}
        return {split: check(mixed(arrays, self.seed), graph, split) for split, arrays in splits.items()}

    def description(self) -> dict[str, Any]:
        words = "a digit, ink 1, paper 0, turned counter-clockwise about the middle"
        made = of_images(words, "grey", ground="dark")
        return {"classes": {"label": [str(digit) for digit in range(10)]}, "preprocessing": {"image": made}}

    def _held_out(self) -> set[int]:
        return set(self.held_out) if isinstance(self.held_out, tuple) else {self.held_out}


def rotated(images: NDArray[np.float32], angle: float) -> NDArray[np.float32]:
    """Images [count, height, width] turned counter-clockwise by degrees, black where nothing was."""
    from scipy.ndimage import rotate

    turned: NDArray[np.float32] = rotate(images, angle, axes=(2, 1), reshape=False, order=1)
    return turned


def _domain(images: NDArray[np.float32], labels: NDArray[Any], angle: int) -> Arrays:
    words = np.full(len(labels), str(angle))
    return Arrays({"image": rotated(images, angle)[:, None], "label": labels}, {"domain": words})


def _joined(domains: list[Arrays]) -> Arrays:
    values = {name: np.concatenate([each.values[name] for each in domains]) for name in ("image", "label")}
    return Arrays(values, {"domain": np.concatenate([each.groups["domain"] for each in domains])})
