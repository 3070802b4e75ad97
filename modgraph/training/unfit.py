"""Reports names in a recipe that the model or the training does not have, before a training that would miss them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.ir import Graph, comparisons
from modgraph.metrics.evaluation import metrics_of
from modgraph.metrics.metrics import Asked, Metrics
from modgraph.metrics.samples import SAMPLED
from modgraph.training.augment import unfit_inputs
from modgraph.training.errors import CannotMeasure, UnknownMetric, UnlikeMetrics
from modgraph.training.labels import unfit_labels
from modgraph.training.losses import unfit_losses
from modgraph.training.progress import names_in
from modgraph.training.recipe import Recipe
from modgraph.training.scheduled import unfit_states
from modgraph.training.sections import Train


def refuse_unfit(graph: Graph, recipe: Recipe) -> None:
    """Raises `ModgraphError` with every target, loss, input or state of the recipe that the model does not have."""
    train = recipe.train
    unfit = {
        "labels": unfit_labels(graph, train.labels or {}),
        "losses": unfit_losses(graph, train.losses or {}),
        "metrics": unfit_metrics(graph, train.metrics or {}),
        "augment": unfit_inputs(graph, train.augment or {}),
        "states": unfit_states(graph, train.states or {}),
    }
    keyed = [(f"train.{section}.{key}", each) for section, found in unfit.items() for key, each in found]
    if keyed:
        raise ModgraphError([each.changed(span=recipe.places.get(key)) for key, each in keyed])


def unfit_metrics(graph: Graph, asked: Asked) -> Iterator[tuple[str, Diagnostic]]:
    """Metrics of targets that cannot be measured, by target."""
    targets = {each.target: graph.target_types[each.target] for each in comparisons(graph)}
    for target, names in asked.items():
        if target not in targets:
            reason = "no loss of the spec compares with it"
            yield target, CannotMeasure(target=target, reason=reason, suggestion=did_you_mean(target, targets))
            continue
        fitting = [each for each, kind in SAMPLED.items() if kind.dtype == targets[target].dtype]
        for name in names_in(names):
            if name not in fitting:
                reason = f"{name} cannot be measured of {targets[target]}"
                reason = reason if name in SAMPLED else f'there is no metric "{name}" that may be asked for'
                suggestion = did_you_mean(name, fitting, "of such a target: {known}")
                yield target, CannotMeasure(target=target, reason=reason, suggestion=suggestion)


def measured_metrics(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> dict[str, bool]:
    """The metrics of an epoch by the names that a recipe gives them, and of each whether larger is better."""
    own = Metrics(graph).larger_is_better
    found = {**own, **{f"{TRAIN}.{name}": larger for name, larger in own.items()}}
    if VALIDATION in splits:
        held_out = metrics_of(graph, splits[VALIDATION], train.by, train.metrics).larger_is_better
        found |= {f"{VALIDATION}.{name}": larger for name, larger in held_out.items()}
    return found


def check_monitored(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> None:
    """Raises `ModgraphError` for monitored metrics that this training will not measure, or several with no meaningful
    mean: some are better when larger, some when smaller."""
    known = measured_metrics(graph, train, splits)
    stop = None if train.early_stop is None else train.early_stop.metric
    found: list[Diagnostic] = []
    for key, asked in (("train.best", train.best), ("train.early_stop.metric", stop)):
        names = () if asked is None else names_in(asked)
        unknown = [name for name in names if name not in known] or ([] if names or asked is None else [""])
        for name in unknown:
            suggestion = did_you_mean(name, known, "this training measures: {known}")
            if name.startswith(f"{VALIDATION}.") and VALIDATION not in splits:
                suggestion = "hold data out to measure it on: train.validation: 0.1"
            found.append(UnknownMetric(key=key, metric=name, suggestion=suggestion))
        larger, smaller = ([name for name in names if known.get(name) is which] for which in (True, False))
        if larger and smaller and not unknown:
            found.append(UnlikeMetrics(key=key, larger=larger[0], smaller=smaller[0]))
    if found:
        raise ModgraphError(found)
