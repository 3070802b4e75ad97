"""Adaptive searches: Optuna proposes points by what the finished ones gave.

Nothing of a search is kept but its points. A study is rebuilt from them for each proposal, and the sampler of a
proposal is seeded by its number, so a search that was killed goes on as if it had not been. With several jobs, a
proposal knows the trials that are certainly over: all but the last `jobs - 1`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from modgraph.declare import format_value
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.log import log
from modgraph.ops.measures import is_larger_better
from modgraph.store.journal import read_metrics
from modgraph.store.run_directory import RunDirectory
from modgraph.study import errors
from modgraph.study.folder import SweepFolder, record_point
from modgraph.study.plan import Search
from modgraph.study.point import Point
from modgraph.study.points import LABEL
from modgraph.study.space import INTEGERS, LOG, Range
from modgraph.tables.sweep_folder import SweepPoint, SweepRecord

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

STARTUP = 5  # trials that finish before any is pruned
PRIME = 1_000_003  # so that searches of different seeds share no sampler
DIGITS = 4  # of a real number, as random searches have them


@dataclass(frozen=True)
class Trial:
    """A proposal: the values of the keys that are searched, its points, and the limits by epoch of their metric."""

    number: int
    values: Mapping[str, Any]
    points: tuple[Point, ...]
    limits: Mapping[str, float]

    def records(self) -> list[SweepPoint]:
        """Return its points as sweep.json keeps them."""
        return [record_point(each, self.number, self.limits) for each in self.points]


@dataclass
class Trials:
    """The trials of a search so far. `record` has those of earlier calls."""

    search: Search
    jobs: int
    folder: SweepFolder
    record: SweepRecord
    trials: list[Trial] = field(default_factory=list)
    metrics: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # of finished points, by identity

    @property
    def settings(self) -> Any:
        """What the sweep says about its search."""
        assert self.search.sweep.optuna is not None, "it is a search"
        return self.search.sweep.optuna

    @cached_property
    def larger(self) -> bool:
        return bool(is_larger_better(self.settings.metric))

    @property
    def points(self) -> list[Point]:
        """The points of all trials so far."""
        return [point for trial in self.trials for point in trial.points]

    def count_left(self) -> int:
        """Count the points that are still to be proposed."""
        seeds = self.search.sweep.seeds
        left: int = self.settings.trials - len(self.trials)
        return left * (1 if seeds is None else seeds.count)

    def propose(self, finished: Mapping[str, Mapping[str, Any]], failed: Mapping[str, Any]) -> Trial | None:
        """Return the next trial, given metrics of finished points by identity and the failed ones; None at the end, and
        where another must be over first. Raises `ModgraphError`."""
        number = len(self.trials)
        if number >= self.settings.trials:
            return None
        self.metrics = {each.identity: finished[each.identity] for each in self.points if each.identity in finished}
        values = self._read_earlier(number)
        if values is None:
            over = self.trials[: max(0, number + 1 - self.jobs)]
            ended = finished.keys() | failed.keys()
            if any(point.identity not in ended for trial in over for point in trial.points):
                return None
            values, limits = self._ask(number, over), self._compute_limits(over)
        else:
            limits = dict(next(each.limits for each in self.record.points if self._is_of(each, number)))
        trial = Trial(number, values, self._plan_points(values), limits)
        self.trials.append(trial)
        return trial

    def _plan_points(self, values: Mapping[str, Any]) -> tuple[Point, ...]:
        """Return the points of some values, none where they make no model or no training."""
        try:
            return self.search.propose(values)
        except ModgraphError as error:
            text = ", ".join(f"{key}={format_value(value)}" for key, value in values.items())
            log.warning(f"{text} cannot be trained: {'; '.join(each.text() for each in error.diagnostics)}")
            return ()

    def find_limits(self, point: Point) -> Mapping[str, float] | None:
        """Return the limits of a point; None for one that is not of this search."""
        return next((each.limits for each in self.trials if point in each.points), None)

    def is_pruned(self, point: Point, metrics: Mapping[str, Any]) -> bool:
        """Whether a finished point ended early, since it was worse than its limit."""
        limit = (self.find_limits(point) or {}).get(str(metrics.get("epochs")))
        value = None if limit is None else self.read_curve(point).get(metrics["epochs"])
        return limit is not None and value is not None and not (value >= limit if self.larger else value <= limit)

    def find_best(self) -> dict[str, Any] | None:
        """Return the best trial: its runs, its values and its metric."""
        rated = [(value, trial) for trial in self.trials if (value := self.rate(trial)) is not None]
        if not rated:
            return None
        value, best = (max if self.larger else min)(rated, key=lambda each: each[0])
        return {"runs": [each.run for each in best.points], "values": dict(best.values), self.settings.metric: value}

    # ------------------------------------------------------------ what trials gave

    def rate(self, trial: Trial) -> float | None:
        """Return the metric of a trial, the mean over its seeds; None if one of its points has none."""
        values = [self._find_metric(each) for each in trial.points if each.identity in self.metrics]
        found = [each for each in values if each is not None and math.isfinite(each)]
        return fmean(found) if found and len(found) == len(trial.points) else None

    def _find_metric(self, point: Point) -> float | None:
        """Return the metric at the end of a finished point. Raises `ModgraphError` where it is not measured."""
        metric, metrics = self.settings.metric, self.metrics[point.identity]
        if metric in metrics:
            value: float | None = metrics[metric]
            return value
        curve = self.read_curve(point)
        if not curve:
            lines = read_metrics(self._run_of(point))
            known = [*metrics, *(f"{line['split']}.{name}" for line in lines[-2:] for name in line)]
            suggestion = did_you_mean(metric, sorted(set(known)), "its metrics are: {known}")
            raise ModgraphError([errors.CannotSearch(metric=metric, run=point.run, suggestion=suggestion)])
        return curve[max(curve)]

    def read_curve(self, point: Point) -> dict[int, float]:
        """Read the metric of a point after each epoch. Raises `ModgraphError`."""
        split, _, name = self.settings.metric.partition(".")
        lines = [line for line in read_metrics(self._run_of(point)) if line["split"] == split]
        return {line["epoch"]: line[name] for line in lines if line.get(name) is not None}

    def _run_of(self, point: Point) -> RunDirectory:
        return RunDirectory(self.folder.path / point.run)

    # ------------------------------------------------------------ Optuna

    def _is_of(self, point: SweepPoint, number: int) -> bool:
        return point.trial == number and point.sweep == self.search.sweep.name

    def _read_earlier(self, number: int) -> dict[str, Any] | None:
        """Return the values of a trial that an earlier call proposed in this space; None if there is none."""
        keys = self._distributions.keys()
        earlier = next((each for each in self.record.points if self._is_of(each, number)), None)
        if earlier is None:
            return None
        values = {**earlier.values, **({LABEL: earlier.label} if LABEL in keys else {})}
        if not keys <= values.keys() or not all(self._contains(key, values[key]) for key in keys):
            return None
        return {key: values[key] for key in keys}

    def _contains(self, key: str, value: Any) -> bool:
        tried = self.search.space[key]
        if isinstance(tried, Range):
            return isinstance(value, int | float) and tried.low <= value <= tried.high
        return value in tried

    @cached_property
    def _distributions(self) -> dict[str, BaseDistribution]:
        """Optuna's distributions by key: of alternatives, their numbers."""
        from optuna import distributions as of

        found: dict[str, BaseDistribution] = {}
        for key, tried in self.search.space.items():
            if not isinstance(tried, Range):
                found[key] = of.CategoricalDistribution(range(len(tried)))
            elif tried.kind == INTEGERS:
                found[key] = of.IntDistribution(int(tried.low), int(tried.high))
            else:
                found[key] = of.FloatDistribution(tried.low, tried.high, log=tried.kind == LOG)
        return found

    def _ask(self, number: int, over: Sequence[Trial]) -> dict[str, Any]:
        """Ask Optuna for the values of a trial, given those that are over."""
        import optuna

        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            sampler = optuna.samplers.TPESampler(seed=(self.settings.seed * PRIME + number) % 2**32)
            study = optuna.create_study(direction="maximize" if self.larger else "minimize", sampler=sampler)
            study.add_trials([self._as_optuna(each) for each in over])
            params = study.ask(self._distributions).params
        finally:
            optuna.logging.set_verbosity(before)
        return {key: self._to_value(key, value) for key, value in params.items()}

    def _to_value(self, key: str, param: Any) -> Any:
        tried = self.search.space[key]
        if not isinstance(tried, Range):
            return tried[param]
        return param if tried.kind == INTEGERS else min(max(float(f"{param:.{DIGITS}g}"), tried.low), tried.high)

    def _to_param(self, key: str, value: Any) -> Any:
        tried = self.search.space[key]
        return value if isinstance(tried, Range) else tried.index(value)

    def _as_optuna(self, trial: Trial) -> FrozenTrial:
        from optuna.trial import TrialState, create_trial

        value = self.rate(trial)
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        epochs: dict[int, float] = {}
        if value is not None and any(self.is_pruned(each, self.metrics[each.identity]) for each in trial.points):
            state, epochs = TrialState.PRUNED, {min(max(self.read_curve(each)) for each in trial.points): value}
        return create_trial(
            state=state,
            value=value if state == TrialState.COMPLETE else None,
            params={key: self._to_param(key, each) for key, each in trial.values.items()},
            distributions=self._distributions,
            intermediate_values=epochs,
        )

    # ------------------------------------------------------------ pruning

    def _compute_limits(self, over: Sequence[Trial]) -> dict[str, float]:
        """Return the median by epoch of the trials that are over and were not pruned; none before a few are."""
        if not self.settings.prune:
            return {}
        finished = [point for trial in over for point in trial.points if point.identity in self.metrics]
        whole = [self.read_curve(each) for each in finished if not self.is_pruned(each, self.metrics[each.identity])]
        if len(whole) < STARTUP:
            return {}
        last = max((epoch for curve in whole for epoch in curve), default=0)
        by_epoch = {epoch: [curve[epoch] for curve in whole if epoch in curve] for epoch in range(1, last)}
        return {str(epoch): median(found) for epoch, found in by_epoch.items() if found}
