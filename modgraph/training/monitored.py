"""Metrics that a recipe monitors, checked before a training that would never reach them."""

from __future__ import annotations

from collections.abc import Mapping

from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph
from modgraph.metrics.evaluation import metrics_of
from modgraph.metrics.metrics import Metrics
from modgraph.training.errors import UnknownMetric
from modgraph.training.sections import Train


def measured_metrics(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> dict[str, bool]:
    """The metrics of an epoch by the names that a recipe gives them, and of each whether larger is better."""
    own = Metrics(graph).larger_is_better
    found = {**own, **{f"{TRAIN}.{name}": larger for name, larger in own.items()}}
    if VALIDATION in splits:
        held_out = metrics_of(graph, splits[VALIDATION], train.by).larger_is_better
        found |= {f"{VALIDATION}.{name}": larger for name, larger in held_out.items()}
    return found


def check_monitored(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> None:
    """Raises `ModgraphError` for a metric that this training will not measure."""
    known = measured_metrics(graph, train, splits)
    stop = None if train.early_stop is None else train.early_stop.metric
    monitored = {"train.best": train.best, "train.early_stop.metric": stop}
    for key, metric in monitored.items():
        if metric is None or metric in known:
            continue
        suggestion = did_you_mean(metric, known, "this training measures: {known}")
        if metric.startswith(f"{VALIDATION}.") and VALIDATION not in splits:
            suggestion = "hold data out to measure it on: train.validation: 0.1"
        raise ModgraphError([UnknownMetric(key=key, metric=metric, suggestion=suggestion)])
