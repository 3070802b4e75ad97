"""Arrays from the user's disk, for any spec: `.npz` files with arrays named as its inputs and targets."""

from __future__ import annotations

import numpy as np
from modgraph_runtime import BundleError
from modgraph_runtime.arrays import read_arrays

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check
from modgraph.data.errors import BadDataFile, DataDoesNotFit
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph


class Npz(DataSet):
    """Arrays named as the spec's inputs and targets, examples first; `<axis>_length` for padded axes."""

    name = "npz"

    train: str = setting(path=True, doc="the .npz file to learn from")
    test: str | None = setting(None, path=True, doc="the .npz file to test on; part of the other if not given")
    test_fraction: float = setting(0.2, min=0.01, max=0.9, doc="share kept for the test where there is no file for it")
    seed: int = setting(0, min=0, doc="of the split")

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        names = {*graph.input_types, *graph.target_types}
        arrays = check(read_npz(self.train, names), graph, self.train)
        if self.test is not None:
            test = check(read_npz(self.test, names), graph, self.test)
            return {TRAIN: arrays, "test": test}
        order = np.random.default_rng(self.seed).permutation(len(arrays))
        kept = max(1, round(self.test_fraction * len(arrays)))
        if kept >= len(arrays):
            raise ModgraphError([DataDoesNotFit(reason=f"{len(arrays)} examples are too few to split")])
        return {TRAIN: arrays.take(order[kept:]), "test": arrays.take(order[:kept])}


def read_npz(path: str, names: set[str]) -> Arrays:
    """The named arrays of a file, as far as it has them. Raises `ModgraphError`; pickled arrays are refused."""
    try:
        return Arrays(read_arrays(path, names))
    except BundleError as error:
        reason = str(error).partition(": ")[2] or str(error)
        raise ModgraphError([BadDataFile(path=path, reason=reason)]) from error
