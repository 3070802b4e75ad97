"""Accuracies of a bundle: what ONNX Runtime makes of a run's test data."""

from __future__ import annotations

import torch
from modgraph_runtime import Bundle, BundleError

from modgraph.backends.errors import BadBundle
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.training.data import Arrays
from modgraph.training.evaluation import slices
from modgraph.training.metrics import Means, accuracies


def evaluate_bundle(path: str, graph: Graph, arrays: Arrays) -> dict[str, float]:
    """Accuracies over a split, of every cross-entropy whose logits are an output. Raises `ModgraphError`."""
    means = Means()
    names = {result: name for name, result in graph.outputs.items()}
    try:
        bundle = Bundle(path)
        for places in slices(arrays):
            batch = arrays.read(places)
            outputs = bundle.run({name: array for name, array in batch.items() if name in bundle.inputs})
            for accuracy in accuracies(graph):
                if names.get(accuracy.logits) in outputs:
                    logits = torch.from_numpy(outputs[names[accuracy.logits]])
                    length = None if accuracy.length is None else torch.from_numpy(batch[accuracy.length])
                    label = torch.from_numpy(batch[accuracy.target])
                    means.add(accuracy.name, *accuracy.count(logits, label, length))
    except BundleError as error:
        raise ModgraphError([BadBundle(reason=str(error))]) from error
    return means.values()
