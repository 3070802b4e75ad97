"""Metrics of a bundle: what ONNX Runtime makes of a run's test data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from modgraph_runtime import Bundle, BundleError
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.errors import BadBundle
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Result
from modgraph.nn import CrossEntropy
from modgraph.training.data import Arrays
from modgraph.training.evaluation import slices
from modgraph.training.means import Means
from modgraph.training.metrics import Metric, Metrics, Perplexity


def evaluate_bundle(path: str, graph: Graph, arrays: Arrays) -> dict[str, float]:
    """The metrics over a split of whatever an output is compared with. Raises `ModgraphError`."""
    means, metrics, bundle = Means(), Metrics(graph), _opened(path)
    for places in slices(arrays):
        rows = arrays.read(places)
        batch = {name: torch.from_numpy(array) for name, array in rows.items()}
        outputs = _outputs(bundle, graph, rows)
        for metric in metrics.compared:
            if _compared(graph, metric) in outputs:
                value = outputs[_compared(graph, metric)]
                if isinstance(metric, Perplexity):
                    loss = CrossEntropy(ignore=metric.ignore, reduce=metric.reduce)
                    value = loss(value, batch[metric.target], metric.length_in(batch))
                metric.add(means, batch, [value])
    return metrics.values(means)


def _compared(graph: Graph, metric: Metric) -> Result:
    """What a metric compares with its target: a perplexity, the logits of its cross-entropy."""
    return graph.inputs(metric.result.node)["logits"] if isinstance(metric, Perplexity) else metric.result


def _outputs(bundle: Bundle, graph: Graph, rows: Mapping[str, NDArray[Any]]) -> dict[Result, Tensor]:
    """What a bundle makes of some examples. Raises `ModgraphError`."""
    try:
        found = bundle.run({name: array for name, array in rows.items() if name in bundle.inputs})
    except BundleError as error:
        raise ModgraphError([BadBundle(reason=str(error))]) from error
    return {result: torch.from_numpy(found[name]) for name, result in graph.outputs.items() if name in found}


def _opened(path: str) -> Bundle:
    try:
        return Bundle(path)
    except BundleError as error:
        raise ModgraphError([BadBundle(reason=str(error))]) from error
