"""A regression composed of two functions (Kirsch et al., Modular Networks, NeurIPS 2018, section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check_splits
from modgraph.declare import setting
from modgraph.ir import Graph

if TYPE_CHECKING:
    pass

COMPONENTS = ("rotation", "scaling")


class TwoGaussians(DataSet, name="two_gaussians"):
    """A regression on points x of the plane from two Gaussians of equal probability.

    y = R x for the first, a rotation, and y = S x for the second, a scaling of each axis. Only the position of x
    distinguishes them.
    """

    exact = False

    train: int = setting(2_000, min=1, max=10_000_000, doc="number of training points")
    test: int = setting(1_000, min=1, max=10_000_000, doc="number of test points")
    rotated_mean: tuple[float, ...] = setting((-1.0, 0.0), doc="mean of the Gaussian whose points are rotated")
    scaled_mean: tuple[float, ...] = setting((1.0, 0.0), doc="mean of the Gaussian whose points are scaled")
    spread: float = setting(0.3, min=0, doc="standard deviation of both Gaussians")
    angle: float = setting(90.0, doc="angle of the rotation in degrees, counter-clockwise")
    scales: tuple[float, ...] = setting((0.5, 2.0), doc="factors of the scaling, one for each axis")
    seed: int = setting(0, min=0, doc="seed of the points")

    def contradiction(self) -> str | None:
        pairs = {"rotated_mean": self.rotated_mean, "scaled_mean": self.scaled_mean, "scales": self.scales}
        wrong = next((name for name, pair in pairs.items() if len(pair) != 2), None)
        return wrong and f"needs two numbers for {wrong}, for points in the plane"

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        return check_splits({TRAIN: self._points(self.train, 0), "test": self._points(self.test, 1)}, graph)

    def _points(self, count: int, stream: int) -> Arrays:
        """Return x and y [count, 2], and the component of each point."""
        import numpy as np

        rng = np.random.default_rng((self.seed, stream))
        component = rng.integers(0, 2, count)
        centres = np.array([self.rotated_mean, self.scaled_mean])
        x = centres[component] + self.spread * rng.standard_normal((count, 2))
        cosine, sine = np.cos(np.radians(self.angle)), np.sin(np.radians(self.angle))
        maps = np.array([[[cosine, -sine], [sine, cosine]], np.diag(self.scales)])
        y = np.einsum("nij,nj->ni", maps[component], x)
        return Arrays({"x": x, "y": y}, {"component": np.array(COMPONENTS)[component]})
