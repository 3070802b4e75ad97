"""Padding in arrays of examples of unequal lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modgraph.ir import Graph, Padding, list_padding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = Mapping[str, NDArray[Any]]


def find_padding_in(graph: Graph, values: Values) -> dict[str, Padding]:
    """Return the padded axes of each array of a spec's inputs and targets whose lengths are given."""
    types = {**graph.input_types, **graph.target_types}
    axes = {name: list_padding(graph, type_) for name, type_ in types.items() if name in values}
    known = {name: tuple((at, length) for at, length in each if length in values) for name, each in axes.items()}
    return {name: each for name, each in known.items() if each}


def clear_padding(values: Values, graph: Graph, ignored: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Return the arrays with zeros where padding holds invalid values: infinities, NaN, or no class."""
    import numpy as np
    from modgraph_runtime.ports import find_unpadded

    types, found = {**graph.input_types, **graph.target_types}, dict(values)
    for name, padding in find_padding_in(graph, values).items():
        array, type_ = values[name], types[name]
        if not all(at < array.ndim and values[length].shape == array.shape[:1] for at, length in padding):
            continue  # the check of shapes says why
        wrong = np.zeros(array.shape, bool)
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                wrong = ~np.isfinite(array.astype(np.float32, copy=False))
        elif array.dtype.kind in "iu" and type_.ends:
            wrong = np.ones(array.shape, bool)  # any place may be beyond the nodes of its example
        elif array.dtype.kind in "iu" and type_.size is not None:
            wrong = (array < 0) | (not type_.of and array >= type_.size)  # a training may add classes to some axes
            wrong &= array != ignored[name] if name in ignored else True
        if wrong.any():
            found[name] = np.where(wrong & ~find_unpadded(array, padding, values), np.zeros((), array.dtype), array)
    return found
