"""What is padding in arrays of examples that are of unequal lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.ir import Graph, Padding, padding_of
from modgraph.types import TensorType

Values = Mapping[str, NDArray[Any]]


def padding_in(graph: Graph, values: Values) -> dict[str, Padding]:
    """The padded axes of each array of a spec's inputs and targets, as far as lengths along them are told."""
    types = {**graph.input_types, **graph.target_types}
    axes = {name: padding_of(graph, type_) for name, type_ in types.items() if name in values}
    told = {name: tuple((at, length) for at, length in each if length in values) for name, each in axes.items()}
    return {name: each for name, each in told.items() if each}


def real_places(array: NDArray[Any], padding: Padding, lengths: Values) -> NDArray[np.bool_]:
    """Which places of an array [B, …] are no padding, of its shape."""
    real = np.ones(array.shape, bool)
    for at, name in padding:
        positions = np.arange(array.shape[at]).reshape([-1 if each == at else 1 for each in range(array.ndim)])
        real &= positions < lengths[name].reshape(-1, *[1] * (array.ndim - 1))
    return real


def cut(array: NDArray[Any], padding: Padding, longest: Mapping[str, int]) -> NDArray[Any]:
    """A view of an array [B, …] that goes no further along its padded axes than the longest example."""
    stops: dict[int, int] = {at: longest[name] for at, name in padding if name in longest}
    return array[tuple(slice(stops.get(at)) for at in range(array.ndim))] if stops else array


def without_rubbish(values: Values, graph: Graph, ignored: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The arrays with zeros where their padding holds what is no value of the type: infinite, no number, no class."""
    types = {**graph.input_types, **graph.target_types}
    found = dict(values)
    for name, padding in padding_in(graph, values).items():
        array = values[name]
        if not _fits(array, padding, values):
            continue
        wrong = _rubbish(array, types[name], ignored.get(name))
        if wrong.any():
            found[name] = np.where(wrong & ~real_places(array, padding, values), np.zeros((), array.dtype), array)
    return found


def _fits(array: NDArray[Any], padding: Padding, lengths: Values) -> bool:
    """Whether it can be told what is padding; where not, whoever checks the arrays says why."""
    told = [lengths[name] for _, name in padding]
    return all(at < array.ndim for at, _ in padding) and all(each.shape == array.shape[:1] for each in told)


def _rubbish(array: NDArray[Any], type_: TensorType, ignored: int | None) -> NDArray[np.bool_]:
    found: NDArray[np.bool_]
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # larger numbers become infinite in float32
            found = ~np.isfinite(array.astype(np.float32, copy=False))
        return found
    if array.dtype.kind not in "iu" or type_.size is None:
        return np.zeros(array.shape, bool)
    found = array < 0
    if not type_.of:  # a training may add classes
        found |= array >= type_.size
    return found if ignored is None else found & (array != ignored)
