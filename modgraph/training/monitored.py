"""Metrics that a recipe monitors, checked before a training that would never reach them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, comparisons
from modgraph.metrics.evaluation import metrics_of
from modgraph.metrics.metrics import Asked, Metrics
from modgraph.metrics.samples import SAMPLED
from modgraph.training.errors import CannotMeasure, UnknownMetric, UnlikeMetrics
from modgraph.training.progress import names_in
from modgraph.training.sections import Train


def measured_metrics(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> dict[str, bool]:
    """The metrics of an epoch by the names that a recipe gives them, and of each whether larger is better."""
    own = Metrics(graph).larger_is_better
    found = {**own, **{f"{TRAIN}.{name}": larger for name, larger in own.items()}}
    if VALIDATION in splits:
        held_out = metrics_of(graph, splits[VALIDATION], train.by, train.metrics).larger_is_better
        found |= {f"{VALIDATION}.{name}": larger for name, larger in held_out.items()}
    return found


def check_monitored(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> None:
    """Raises `ModgraphError` for a metric that this training will not measure."""
    known = measured_metrics(graph, train, splits)
    stop = None if train.early_stop is None else train.early_stop.metric
    asked = {"train.best": train.best, "train.early_stop.metric": stop}
    for key, names in ((key, names_in(each)) for key, each in asked.items() if each is not None):
        unknown = next((name for name in names if name not in known), None if names else "")
        if unknown is not None:
            suggestion = _suggested(unknown, known, splits)
            raise ModgraphError([UnknownMetric(key=key, metric=unknown, suggestion=suggestion)])
        _refuse_both_directions(key, names, known)


def _suggested(metric: str, known: Mapping[str, bool], splits: Mapping[str, Arrays]) -> str:
    if metric.startswith(f"{VALIDATION}.") and VALIDATION not in splits:
        return "hold data out to measure it on: train.validation: 0.1"
    return did_you_mean(metric, known, "this training measures: {known}")


def _refuse_both_directions(key: str, names: Sequence[str], known: Mapping[str, bool]) -> None:
    """Raises `ModgraphError` for metrics whose mean says nothing."""
    larger, smaller = ([name for name in names if known[name] is which] for which in (True, False))
    if larger and smaller:
        raise ModgraphError([UnlikeMetrics(key=key, larger=larger[0], smaller=smaller[0])])


def check_asked(graph: Graph, asked: Asked) -> None:
    """Raises `ModgraphError` for a metric of a target that cannot be measured."""
    targets = {each.target: graph.target_types[each.target] for each in comparisons(graph)}
    for target, names in asked.items():
        if target not in targets:
            reason = "no loss of the spec compares with it"
            raise ModgraphError([CannotMeasure(target=target, reason=reason, suggestion=did_you_mean(target, targets))])
        for name in (names,) if isinstance(names, str) else names:
            fitting = [each for each, kind in SAMPLED.items() if kind.dtype == targets[target].dtype]
            if name not in fitting:
                reason = f"{name} cannot be measured of {targets[target]}"
                reason = reason if name in SAMPLED else f'there is no metric "{name}" that may be asked for'
                suggestion = did_you_mean(name, fitting, "of such a target: {known}")
                raise ModgraphError([CannotMeasure(target=target, reason=reason, suggestion=suggestion)])
