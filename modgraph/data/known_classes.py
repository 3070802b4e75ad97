"""Labels, and the classes that a graph has: a continual training adds some, and a loss may leave one out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import Arrays
from modgraph.data.errors import LabelsBeyond
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, ignored_labels


def refuse_labels_beyond(arrays: Arrays, graph: Graph) -> None:
    """Raises `ModgraphError` where labels are none of the classes that a graph has now."""
    for name, beyond in _beyond(arrays, graph).items():
        if beyond.any():
            label, classes = int(arrays.values[name][beyond].min()), graph.target_types[name].size
            raise ModgraphError([LabelsBeyond(target=name, label=label, classes=classes)])


def of_known_classes(arrays: Arrays, graph: Graph) -> Arrays:
    """The examples whose labels are all among the classes that a graph has now."""
    known = np.ones(len(arrays), bool)
    for beyond in _beyond(arrays, graph).values():
        known &= ~beyond.reshape(len(arrays), -1).any(1)
    return arrays if known.all() else arrays.take(np.flatnonzero(known))


def _beyond(arrays: Arrays, graph: Graph) -> dict[str, NDArray[np.bool_]]:
    """Which labels lie beyond the classes there are now, by the target whose classes are an axis with a name."""
    ignored, labels = ignored_labels(graph), arrays.values
    types = {name: each for name, each in graph.target_types.items() if each.of and each.size is not None}
    known = {name: (labels[name], each.size) for name, each in types.items() if name in labels}
    return {name: (label >= size) & (label != ignored.get(name, -1)) for name, (label, size) in known.items()}
