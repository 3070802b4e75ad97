"""Metrics of a bundle: ONNX Runtime computes the outputs on a run's test data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from modgraph_runtime import Bundle, BundleError
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.errors import BadBundle
from modgraph.backends.onnx import exportable, hash_of_weights
from modgraph.data import Arrays
from modgraph.data.batches import batches
from modgraph.data.declaration import refuse_labels_beyond
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.metrics import Asked, Metrics, metrics_of
from modgraph.metrics.target_metrics import Batch
from modgraph.training.errors import OfAnotherRun
from modgraph.training.stored_run import StoredRun

Values = Mapping[str, NDArray[Any]]


def open_bundle_of(run: StoredRun, path: str, check: bool = True) -> Bundle:
    """Open a bundle of the model that a run has now; `check` as in `Bundle`. Raises `ModgraphError` for any other."""
    try:
        manifest = (bundle := Bundle(path, check=check)).manifest
    except BundleError as error:
        raise ModgraphError([BadBundle.from_error(error)]) from error
    models = exportable(run.model(), manifest.get("left_out", {}).get("outputs", ()), "stepwise" in manifest)
    model = next((each for each in models if manifest.get("hash") == each.graph.hash()), None)
    if model is None:
        raise ModgraphError([OfAnotherRun(bundle=path, run=str(run.path), what="another model")])
    if manifest.get("weights") != hash_of_weights(model):
        raise ModgraphError([OfAnotherRun(bundle=path, run=str(run.path), what="other weights")])
    return bundle


def compute_values_of_bundle(bundle: Bundle, graph: Graph, metrics: Metrics, batch: Batch) -> list[Tensor]:
    """Compute the values that metrics read with a bundle. Raises `ModgraphError` where the data do not fit it."""
    inputs = {name: tensor.numpy() for name, tensor in batch.items() if name in bundle.inputs}
    try:
        outputs = bundle.run(inputs)
    except BundleError as error:
        raise ModgraphError([BadBundle.from_error(error)]) from error
    return _values_of(metrics, graph, outputs, batch)


def evaluate_bundle(
    bundle: Bundle, graph: Graph, arrays: Arrays, by: str | None = None, asked: Asked | None = None
) -> dict[str, float]:
    """Return the metrics of a bundle over a split, also of each group of a grouping. Raises `ModgraphError`."""
    refuse_labels_beyond(arrays, graph)
    accumulators, metrics = (
        Accumulators(),
        keep_determined_metrics(bundle.outputs, graph, metrics_of(graph, arrays, by, asked)),
    )
    for indices, batch in batches(arrays):
        words = arrays.groups[str(by)][indices] if metrics.groups else None
        metrics.gather(accumulators, batch, compute_values_of_bundle(bundle, graph, metrics, batch), words=words)
    return metrics.values(accumulators)


def compute_metrics_of_outputs(outputs: Values, graph: Graph, rows: Values) -> dict[str, float]:
    """Return the metrics of a model's outputs for some examples."""
    accumulators, metrics = Accumulators(), keep_determined_metrics(outputs, graph, Metrics(graph))
    batch = {name: torch.from_numpy(array) for name, array in rows.items()}
    metrics.gather(accumulators, batch, _values_of(metrics, graph, outputs, batch))
    return metrics.values(accumulators)


def keep_determined_metrics(outputs: Collection[str], graph: Graph, metrics: Metrics) -> Metrics:
    """Keep those metrics that some outputs determine."""
    known = {result for name, result in graph.outputs.items() if name in outputs}
    metrics.all = [metric for metric in metrics.compared if metric.compared.prediction in known]
    return metrics


def _values_of(metrics: Metrics, graph: Graph, outputs: Values, batch: Batch) -> list[Tensor]:
    """Return the values that metrics read, from outputs by name."""
    results = {result: torch.from_numpy(outputs[name]) for name, result in graph.outputs.items() if name in outputs}
    return [metric.compute_result(results[metric.compared.prediction], batch) for metric in metrics.compared]
