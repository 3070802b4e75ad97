"""Metrics that a recipe monitors, checked before a training that would never reach them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
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
    """Raises `ModgraphError` for metrics that this training will not measure."""
    known = measured_metrics(graph, train, splits)
    stop = None if train.early_stop is None else train.early_stop.metric
    asked = {"train.best": train.best, "train.early_stop.metric": stop}
    found: list[Diagnostic] = []
    for key, names in ((key, names_in(each)) for key, each in asked.items() if each is not None):
        unknown = [name for name in names if name not in known] or ([] if names else [""])
        found += [UnknownMetric(key=key, metric=name, suggestion=_suggested(name, known, splits)) for name in unknown]
        found += [] if unknown else _find_opposed(key, names, known)
    if found:
        raise ModgraphError(found)


def _suggested(metric: str, known: Mapping[str, bool], splits: Mapping[str, Arrays]) -> str:
    if metric.startswith(f"{VALIDATION}.") and VALIDATION not in splits:
        return "hold data out to measure it on: train.validation: 0.1"
    return did_you_mean(metric, known, "this training measures: {known}")


def _find_opposed(key: str, names: Sequence[str], known: Mapping[str, bool]) -> list[UnlikeMetrics]:
    """Metrics with no meaningful mean: some are better when larger, some when smaller."""
    larger, smaller = ([name for name in names if known[name] is which] for which in (True, False))
    return [UnlikeMetrics(key=key, larger=larger[0], smaller=smaller[0])] if larger and smaller else []


def unfit_metrics(graph: Graph, asked: Asked) -> Iterator[tuple[str, Diagnostic]]:
    """Metrics of targets that cannot be measured, by target."""
    targets = {each.target: graph.target_types[each.target] for each in comparisons(graph)}
    for target, names in asked.items():
        if target not in targets:
            reason = "no loss of the spec compares with it"
            yield target, CannotMeasure(target=target, reason=reason, suggestion=did_you_mean(target, targets))
            continue
        fitting = [each for each, kind in SAMPLED.items() if kind.dtype == targets[target].dtype]
        for name in (names,) if isinstance(names, str) else names:
            if name not in fitting:
                reason = f"{name} cannot be measured of {targets[target]}"
                reason = reason if name in SAMPLED else f'there is no metric "{name}" that may be asked for'
                suggestion = did_you_mean(name, fitting, "of such a target: {known}")
                yield target, CannotMeasure(target=target, reason=reason, suggestion=suggestion)
