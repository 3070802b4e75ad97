"""Handwritten digits in the size of a spec's images."""

from __future__ import annotations

from typing import Any

import numpy as np

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check
from modgraph.data.image_arrays import resized, shape_of_grey_images
from modgraph.data.preprocessing import of_images
from modgraph.declare import setting
from modgraph.ir import Graph


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
        channels, *size = shape_of_grey_images(graph)
        images = resized(data.images / 16, (size[0], size[1]))[:, None].repeat(channels, 1)
        arrays = check(Arrays({"image": images, "label": data.target}), graph, "the data")
        order = np.random.default_rng((self.seed, 0)).permutation(len(arrays))
        kept = round(self.test_fraction * len(arrays))
        return {TRAIN: arrays.take(order[kept:][: self.limit]), "test": arrays.take(order[:kept])}

    def description(self) -> dict[str, Any]:
        words = "a handwritten digit, ink 1, paper 0, the same in every channel"
        made = of_images(words, "grey", ground="dark")
        return {"classes": {"label": [str(digit) for digit in range(10)]}, "preprocessing": {"image": made}}
