"""Metrics of a bundle: what ONNX Runtime makes of a run's test data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from modgraph_runtime import Bundle, BundleError
from numpy.typing import NDArray

from modgraph.backends.errors import BadBundle
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Result
from modgraph.nn import CrossEntropy
from modgraph.training.data import Arrays
from modgraph.training.evaluation import slices
from modgraph.training.means import Means
from modgraph.training.metrics import Metric, Metrics, Perplexity

Values = Mapping[str, NDArray[Any]]


def evaluate_bundle(path: str, graph: Graph, arrays: Arrays) -> dict[str, float]:
    """The metrics over a split of whatever an output is compared with. Raises `ModgraphError`."""
    means, metrics = Means(), Metrics(graph)
    try:
        bundle = Bundle(path)
        for places in slices(arrays):
            rows = arrays.read(places)
            found = bundle.run({name: array for name, array in rows.items() if name in bundle.inputs})
            _gather(means, metrics, found, graph, rows)
    except BundleError as error:
        raise ModgraphError([BadBundle(reason=str(error))]) from error
    return metrics.values(means)


def metrics_of_outputs(outputs: Values, graph: Graph, rows: Values) -> dict[str, float]:
    """The same of what a model made of some examples."""
    means, metrics = Means(), Metrics(graph)
    _gather(means, metrics, outputs, graph, rows)
    return metrics.values(means)


def _gather(means: Means, metrics: Metrics, outputs: Values, graph: Graph, rows: Values) -> None:
    """Add the metrics of some outputs, by name, to the means."""
    batch = {name: torch.from_numpy(array) for name, array in rows.items()}
    results = {result: torch.from_numpy(outputs[name]) for name, result in graph.outputs.items() if name in outputs}
    for metric in metrics.compared:
        if _compared(graph, metric) in results:
            value = results[_compared(graph, metric)]
            if isinstance(metric, Perplexity):
                loss = CrossEntropy(ignore=metric.ignore, reduce=metric.reduce)
                value = loss(value, batch[metric.target], metric.length_in(batch))
            metric.add(means, batch, [value])


def _compared(graph: Graph, metric: Metric) -> Result:
    """What a metric compares with its target: a perplexity, the logits of its cross-entropy."""
    return graph.inputs(metric.result.node)["logits"] if isinstance(metric, Perplexity) else metric.result
