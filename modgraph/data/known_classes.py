"""Labels, and the classes that a graph has: a continual training adds some, and a loss may leave one out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import Arrays
from modgraph.data.errors import LabelsBeyond
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, ignored_labels


def refuse_labels_beyond(arrays: Arrays, graph: Graph) -> None:
    """Raises `ModgraphError` where labels are none of the classes that a graph has now."""
    for name, classes, beyond in _beyond(arrays, graph):
        if beyond.any():
            label = int(arrays.values[name][beyond].min())
            raise ModgraphError([LabelsBeyond(target=name, label=label, classes=classes)])


def of_known_classes(arrays: Arrays, graph: Graph) -> Arrays:
    """The examples whose labels are all among the classes that a graph has now."""
    known = np.ones(len(arrays), bool)
    for _, _, beyond in _beyond(arrays, graph):
        known &= ~beyond.reshape(len(arrays), -1).any(1)
    return arrays if known.all() else arrays.take(np.flatnonzero(known))


def _beyond(arrays: Arrays, graph: Graph) -> Iterator[tuple[str, int, NDArray[np.bool_]]]:
    """Of each target whose classes are an axis with a name, how many there are now and which labels lie beyond."""
    ignored = ignored_labels(graph)
    for name, type_ in graph.target_types.items():
        label = arrays.values.get(name) if type_.of else None
        if label is not None and type_.size is not None:
            yield name, type_.size, (label >= type_.size) & (label != ignored.get(name, -1))
