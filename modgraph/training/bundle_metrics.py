"""Accuracies of a bundle: what ONNX Runtime makes of a run's test data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from modgraph_runtime import Bundle, BundleError
from numpy.typing import NDArray

from modgraph.backends.errors import BadBundle
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.training.data import Arrays
from modgraph.training.metrics import Means, accuracies


def evaluate_bundle(path: str, graph: Graph, arrays: Arrays) -> dict[str, float]:
    """Accuracies over a split, of every cross-entropy whose logits are an output. Raises `ModgraphError`."""
    try:
        bundle = Bundle(path)
        outputs = bundle.run({name: array for name, array in arrays.values.items() if name in bundle.inputs})
    except BundleError as error:
        raise ModgraphError([BadBundle(reason=str(error))]) from error
    return accuracies_of(outputs, graph, arrays)


def accuracies_of(outputs: Mapping[str, NDArray[Any]], graph: Graph, arrays: Arrays) -> dict[str, float]:
    """The accuracies of a model's outputs over a split."""
    means = Means()
    names = {result: name for name, result in graph.outputs.items()}
    for accuracy in accuracies(graph):
        if names.get(accuracy.logits) in outputs:
            logits = torch.from_numpy(outputs[names[accuracy.logits]])
            length = None if accuracy.length is None else torch.from_numpy(arrays.values[accuracy.length])
            label = torch.from_numpy(arrays.values[accuracy.target])
            means.add(accuracy.name, *accuracy.count(logits, label, length))
    return means.values()
