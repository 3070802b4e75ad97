"""Metrics of a bundle: what ONNX Runtime makes of a run's test data."""

from __future__ import annotations

import torch
from modgraph_runtime import Bundle, BundleError
from torch import Tensor

from modgraph.backends.errors import BadBundle
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Result
from modgraph.nn import CrossEntropy
from modgraph.training.data import Arrays
from modgraph.training.means import Means
from modgraph.training.metrics import Metric, Metrics, Perplexity


def evaluate_bundle(path: str, graph: Graph, arrays: Arrays) -> dict[str, float]:
    """The metrics over a split of whatever an output is compared with. Raises `ModgraphError`."""
    means, metrics = Means(), Metrics(graph)
    outputs = _outputs(path, graph, arrays)
    batch = {name: torch.from_numpy(array) for name, array in arrays.values.items()}
    for metric in metrics.all:
        if isinstance(metric, Metric) and _compared(graph, metric) in outputs:
            value = outputs[_compared(graph, metric)]
            if isinstance(metric, Perplexity):
                value = CrossEntropy(ignore=metric.ignore, reduce=metric.reduce)(
                    value, batch[metric.target], metric.length_in(batch)
                )
            metric.add(means, batch, [value])
    return metrics.values(means)


def _compared(graph: Graph, metric: Metric) -> Result:
    """What a metric compares with its target: a perplexity, the logits of its cross-entropy."""
    return graph.inputs(metric.result.node)["logits"] if isinstance(metric, Perplexity) else metric.result


def _outputs(path: str, graph: Graph, arrays: Arrays) -> dict[Result, Tensor]:
    """What a bundle makes of a split. Raises `ModgraphError`."""
    try:
        bundle = Bundle(path)
        found = bundle.run({name: array for name, array in arrays.values.items() if name in bundle.inputs})
    except BundleError as error:
        raise ModgraphError([BadBundle(reason=str(error))]) from error
    return {result: torch.from_numpy(found[name]) for name, result in graph.outputs.items() if name in found}
