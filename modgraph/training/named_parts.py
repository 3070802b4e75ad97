"""The parts of a model that a recipe names: labels of targets, states with schedules, metrics.

Unknown names are reported before the training begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from modgraph_runtime.ports import find_unpadded
from numpy.typing import NDArray

from modgraph.backends.torch import Model
from modgraph.backends.torch.model import weights_to_hold
from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.data.errors import DataDoesNotFit
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.ir import Graph, join_name, with_missing_labels
from modgraph.metrics.metrics import Metrics, metrics_of
from modgraph.recipes.optimizers import Schedule
from modgraph.training import errors
from modgraph.training.fit import find_states
from modgraph.training.losses import with_setting
from modgraph.training.sections import Labels, Train, names_in


def ignore_labels(graph: Graph, labels: Mapping[str, Labels]) -> Graph:
    """Return the graph whose losses skip the labels that the recipe ignores, or says may be missing. For labels that
    cannot be skipped see `find_unfit_labels`."""
    ignored = {name: each.ignore for name, each in labels.items() if each.ignore is not None}
    missing = {name: True for name, each in labels.items() if each.missing}
    return with_setting(with_setting(graph, "ignore", ignored), "missing", missing)


def refuse_unlabelled(graph: Graph, train: Arrays) -> None:
    """Raises `ModgraphError` where no training example has a label of some target."""
    for name in sorted(with_missing_labels(graph)):
        labels = _drop_padding(name, train)
        if not (~np.isnan(labels) if labels.dtype.kind == "f" else labels >= 0).any():
            reason = f'no training example has a label of "{name}"'
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out="remove its loss, or check the data")])


def weigh_classes(graph: Graph, labels: Mapping[str, Labels], train: Arrays) -> Graph:
    """Return the graph whose cross-entropies have the recipe's class weights. Raises `ModgraphError`."""
    weights: dict[str, tuple[float, ...]] = {}
    for name, each in labels.items():
        if each.weights is None:
            continue
        size = graph.target_types[name].size
        assert size is not None, "a cross-entropy compares with classes"
        weights[name] = (
            balance_classes(_drop_padding(name, train), size) if isinstance(each.weights, str) else each.weights
        )
        if len(weights[name]) != size:
            reason = f"train.labels.{name}.weights has {len(weights[name])} numbers for {size} classes"
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out="give one weight for each class, or: balanced")])
    return with_setting(graph, "class_weights", weights)


def balance_classes(label: NDArray[Any], classes: int) -> tuple[float, ...]:
    """Return n / (C·n_c) for each class, which gives classes equal weight; ignores labels that are no class."""
    counts = np.bincount(label[(label >= 0) & (label < classes)].ravel(), minlength=classes)
    return tuple(float(counts.sum() / (classes * count)) if count else 0.0 for count in counts)


def _drop_padding(target: str, train: Arrays) -> NDArray[Any]:
    """Return the labels of a target without padding, [S]."""
    label = train.values[target]
    return label[find_unpadded(label, train.padded.get(target, ()), train.values)]


@dataclass(frozen=True)
class ScheduledState:
    """A state: the name of its weight, its start, and its schedule."""

    name: str
    weight: str
    start: float
    schedule: Schedule

    @torch.no_grad()
    def move(self, model: Model, step: int, steps: int, steps_per_epoch: int) -> None:
        """Set its value at a step, from 0, of so many in all."""
        model.lookup(self.weight).fill_(self.start * self.schedule.share(step, steps, steps_per_epoch))


def find_scheduled_states(fresh: Model, graph: Graph, schedules: Mapping[str, Schedule]) -> list[ScheduledState]:
    """Return the states that a recipe moves, with their start in a fresh model. Of several patterns that match one, the
    last counts."""
    states = find_states(graph)
    matching = {name: each for pattern, each in schedules.items() for name in states if fnmatchcase(name, pattern)}
    weights = {name: join_name(name, states[name].op.all_weights()[0].name) for name in matching}
    present = {weight.name for weight in weights_to_hold(graph, fresh.group)}
    here = {name: at for name, at in weights.items() if at in present}
    return [ScheduledState(name, at, float(fresh.lookup(at)), matching[name]) for name, at in here.items()]


def list_metrics(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> dict[str, bool]:
    """Return the metrics of an epoch by the names that a recipe uses, and whether larger is better."""
    own = Metrics(graph).larger_is_better
    found = {**own, **{f"{TRAIN}.{name}": larger for name, larger in own.items()}}
    if VALIDATION in splits:
        of_validation = metrics_of(graph, splits[VALIDATION], train.by, train.metrics).larger_is_better
        found |= {f"{VALIDATION}.{name}": larger for name, larger in of_validation.items()}
    return found


def _suggest_metric(name: str, known: Iterable[str]) -> str:
    """Return the help for an unknown metric: the only one of its split that has the word in its name, or a similar
    one."""
    split, _, short = name.rpartition(".")
    apart = [(each, *each.rpartition(".")[::2]) for each in known]
    longer = [each for each, of, metric in apart if of == split and any(w.startswith(short) for w in metric.split("_"))]
    if short and len(longer) == 1:
        return f'did you mean "{longer[0]}"?'
    return did_you_mean(name, known, "this training measures: {known}")


def check_monitored(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> None:
    """Raises `ModgraphError` for monitored metrics that this training does not measure, or several of opposite
    directions."""
    known = list_metrics(graph, train, splits)
    stop = None if train.early_stop is None else train.early_stop.metric
    found: list[Diagnostic] = []
    for key, asked in (("train.best", train.best), ("train.early_stop.metric", stop)):
        names = () if asked is None else names_in(asked)
        unknown = [name for name in names if name not in known] or ([] if names or asked is None else [""])
        for name in unknown:
            suggestion = _suggest_metric(name, known)
            if name.startswith(f"{VALIDATION}.") and VALIDATION not in splits:
                suggestion = "hold out data for it: train.validation: 0.1"
            found.append(errors.UnknownMetric(key=key, metric=name, suggestion=suggestion))
        larger, smaller = ([name for name in names if known.get(name) is which] for which in (True, False))
        if larger and smaller and not unknown:
            found.append(errors.UnlikeMetrics(key=key, larger=larger[0], smaller=smaller[0]))
    if found:
        raise ModgraphError(found)
