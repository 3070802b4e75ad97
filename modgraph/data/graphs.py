"""Graphs of torch_geometric that need no download: nodes or whole graphs to classify.

Arrays are `x` [nodes, width], `link` [edges, 2] with both directions of each edge, and `label`, of each node or of the
graph.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check_splits
from modgraph.declare import setting
from modgraph.ir import Graph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MISSING = -1  # the label of a node that does not count
WIDTH = 10  # of nodes without values of their own, which are ones
MOTIFS = ("house", "cycle")


class _OneGraph(DataSet):
    """Base of data sets of one graph, whose nodes are labelled in part for training, all others for the test."""

    @abstractmethod
    def load(self) -> tuple[Any, NDArray[np.bool_]]:
        """Return the graph, and whether each node's label is for training."""

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        import numpy as np

        data, train = self.load()
        labels, values = data.y.numpy(), {"x": data.x.numpy()[None], "link": data.edge_index.numpy().T[None]}
        masks = {TRAIN: train, "test": ~train}
        splits = {
            name: Arrays({**values, "label": np.where(mask, labels, MISSING)[None]}) for name, mask in masks.items()
        }
        return check_splits(splits, graph)


class KarateClub(_OneGraph, name="karate_club"):
    """The 34 members of a karate club and their friendships, in four groups (Zachary, 1977).

    x is one-hot, x: float[node, 34]. Four members are labelled for training, one of each group, all others for the
    test: write `cross_entropy(logits, label, missing=true)`.
    """

    def load(self) -> tuple[Any, NDArray[np.bool_]]:
        from torch_geometric.datasets import KarateClub as OfGeometric

        data = OfGeometric()[0]
        return data, data.train_mask.numpy()


class BaShapes(_OneGraph, name="ba_shapes"):
    """80 houses of five nodes at a graph of 300: which place in a house a node has (Ying et al., GNNExplainer, 2019).

    x is ones, x: float[node, 10], so that only edges tell the four classes apart. Labels for training are a share of
    all, the others are for the test: write `cross_entropy(logits, label, missing=true)`.
    """

    train_fraction: float = setting(0.8, min=0.01, max=0.99, doc="share of the nodes that are labelled for training")
    seed: int = setting(0, min=0, doc="seed of the graph and of the split")

    def load(self) -> tuple[Any, NDArray[np.bool_]]:
        import numpy as np
        from torch_geometric.datasets import BAShapes as OfGeometric

        with seed_geometric(self.seed):
            data = OfGeometric()[0]
        order = np.random.default_rng((self.seed, 7)).permutation(data.num_nodes)
        return data, order < self.train_fraction * data.num_nodes


class Motifs(DataSet, name="motifs"):
    """Graphs with a house or a cycle of five nodes attached, to tell apart (BA-2motifs; Luo et al., PGExplainer, 2020).

    x is ones, x: float[node, 10], and label: class[2]. Graphs differ in their number of nodes, so `node_length` and
    `link_length` are arrays too.
    """

    train: int = setting(400, min=1, max=1_000_000, doc="number of graphs for training")
    test: int = setting(100, min=1, max=1_000_000, doc="number of graphs for the test")
    nodes: tuple[int, ...] = setting((15, 25), min=2, doc="fewest and most nodes without the motif")
    seed: int = setting(0, min=0, doc="seed of the graphs")

    def contradiction(self) -> str | None:
        fits = len(self.nodes) == 2 and self.nodes[0] <= self.nodes[-1]
        return None if fits else "needs two numbers for nodes, the fewest and the most"

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        counts = {TRAIN: self.train, "test": self.test}
        return check_splits({name: self._draw(count, at) for at, (name, count) in enumerate(counts.items())}, graph)

    def _draw(self, count: int, stream: int) -> Arrays:
        import numpy as np
        from torch_geometric.datasets import ExplainerDataset
        from torch_geometric.datasets.graph_generator import BAGraph

        rng = np.random.default_rng((self.seed, stream))
        labels, sizes = rng.integers(0, 2, count), rng.integers(self.nodes[0], self.nodes[1] + 1, count)
        motifs = {"house": "house", "cycle": _make_cycle()}
        graphs = []
        with seed_geometric(int(rng.integers(2**31))):
            for label, size in zip(labels, sizes, strict=True):
                made = ExplainerDataset(BAGraph(int(size), 1), motifs[MOTIFS[label]], num_motifs=1)[0]
                graphs.append((np.ones((made.num_nodes, WIDTH), np.float32), made.edge_index.numpy().T))
        return Arrays({**pad_graphs(graphs), "label": labels}, {"motif": np.array(MOTIFS)[labels]})


def _make_cycle() -> Any:
    from torch_geometric.datasets.motif_generator import CycleMotif

    return CycleMotif(5)


def pad_graphs(graphs: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Stack the values [nodes, …] and the edges [edges, 2] of graphs, with zeros as padding, and give their lengths."""
    import numpy as np

    found: dict[str, NDArray[Any]] = {}
    for name, axis, arrays in zip(("x", "link"), ("node", "link"), zip(*graphs, strict=True), strict=True):
        lengths = np.array([len(each) for each in arrays])
        whole = np.zeros((len(arrays), lengths.max(), *arrays[0].shape[1:]), arrays[0].dtype)
        for row, each in zip(whole, arrays, strict=True):
            row[: len(each)] = each
        found |= {name: whole, f"{axis}_length": lengths}
    return found


@contextmanager
def seed_geometric(seed: int) -> Iterator[None]:
    """Seed the random numbers that torch_geometric draws inside this context; those outside stay as they are."""
    import random

    import numpy as np
    import torch

    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
