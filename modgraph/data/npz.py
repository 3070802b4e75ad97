"""Arrays from the user's disk, for any spec: `.npz` files with arrays named as its inputs and targets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check, split_off
from modgraph.data.errors import UnknownArray, bad_file
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph


class Npz(DataSet, name="npz"):
    """Arrays named as the spec's inputs and targets, examples first; `<axis>_length` for padded axes."""

    train: str = setting(path=True, doc="the .npz file for training")
    test: str | None = setting(
        None, path=True, doc="the .npz file for the test; a part of the training file if not given"
    )
    test_fraction: float = setting(0.2, min=0.01, max=0.9, doc="share for the test if it has no file")
    seed: int = setting(0, min=0, doc="seed of the split")
    next: Mapping[str, str] | None = setting(
        None, doc="targets that are an input one place later, each with that input; check looks for models that copy it"
    )

    def follows(self) -> Mapping[str, str]:
        return self.next or {}

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        arrays = _read_for(self.train, graph)
        if self.test is not None:
            return {TRAIN: arrays, "test": _read_for(self.test, graph)}
        return split_off(arrays, self.test_fraction, self.seed)


def _read_for(path: str, graph: Graph) -> Arrays:
    known = list(dict.fromkeys([*graph.input_types, *graph.target_types]))
    refuse_unknown(path, known)
    return check(read_npz(path, known), graph, path)


def refuse_unknown(path: str, known: Collection[str]) -> None:
    """Raises `ModgraphError` where a file lacks a known array and has an unknown one, which may be misspelt."""
    from modgraph_runtime.arrays import list_array_names

    with _reading(path, known):
        found = list_array_names(path)
    if any(name.endswith("data.pkl") for name in found):
        arrays = ", ".join(f"{name}=…" for name in known)
        way_out = f'save arrays by name: numpy.savez("{Path(path).with_suffix(".npz").name}", {arrays})'
        raise bad_file(path, "it is a pickle of torch, which could run any program", way_out)
    left = sorted({*known} - {*found})
    unknown = [name for name in found if name not in known]
    if left and unknown:  # where nothing is missing, nothing is misspelt: specs share files
        otherwise = "remove it: name arrays as the spec's inputs and targets"
        suggestions = {name: did_you_mean(name, left, otherwise) for name in unknown}
        raise ModgraphError(UnknownArray(path=path, name=name, suggestion=each) for name, each in suggestions.items())


def read_npz(path: str, names: Collection[str]) -> Arrays:
    """Read the named arrays of a file, as far as it has them. Raises `ModgraphError`, also for pickled arrays."""
    from modgraph_runtime.arrays import read_arrays

    with _reading(path, names):
        return Arrays(read_arrays(path, names))


@contextmanager
def _reading(path: str, names: Collection[str]) -> Iterator[None]:
    """Report problems with a file of arrays by `names`. Raises `ModgraphError`."""
    from modgraph_runtime import BundleError
    from modgraph_runtime.arrays import SingleArray

    try:
        yield
    except SingleArray as error:
        arrays = ", ".join(f"{name}=…" for name in names)
        way_out = f'save arrays by name: numpy.savez("{Path(path).with_suffix(".npz").name}", {arrays})'
        raise bad_file(path, "it is one array without a name (.npy), not arrays by name (.npz)", way_out) from error
    except BundleError as error:
        raise bad_file(path, str(error).partition(": ")[2] or str(error)) from error
