"""Differences between two runs beyond their architectures: recipes, data, metrics, seconds and routing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from modgraph.ops.measures import TOTAL, is_larger_better

Better = Literal["before", "after"]
Splits = Mapping[str, Mapping[str, Any]]  # the number of `examples` and the digest `sha256` of each split
Metrics = Mapping[str, float | None]


@dataclass(frozen=True)
class KeyChange:
    """A key of the recipe, dotted, and its values; None where a recipe does not have it."""

    key: str
    before: Any
    after: Any


@dataclass(frozen=True)
class SplitChange:
    """A split with other examples, and how many each run has; None without the split."""

    split: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class MetricChange:
    """A metric of both runs; None where one does not have it."""

    metric: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def better(self) -> Better | None:
        """Which run is better by the metric's direction; None if neither is."""
        larger = is_larger_better(self.metric)
        if larger is None or not self.difference:
            return None
        return "after" if (self.difference > 0) is larger else "before"


@dataclass(frozen=True)
class RouteFacts:
    """The decisions of a route: H_a, the mean entropy of one; H_b, the entropy of the mean decision, both in
    nats; and the share of each module in the load."""

    H_a: float | None
    H_b: float | None
    shares: tuple[float, ...]


@dataclass(frozen=True)
class RouteChange:
    """A route of both runs, by their traces or by their metrics."""

    route: str
    source: Literal["trace", "metrics"]
    before: RouteFacts
    after: RouteFacts

    @property
    def distance(self) -> float | None:
        """Half the sum of |difference| over shares: which part of the load is elsewhere (the total variation distance).
        None where the numbers of modules differ."""
        if not len(self.before.shares) == len(self.after.shares) > 0:
            return None
        return sum(abs(old - new) for old, new in zip(self.before.shares, self.after.shares, strict=True)) / 2


@dataclass(frozen=True)
class RunsCompared:
    """Two runs: keys of their recipes that differ, splits with other examples, all metrics, the seconds of training if
    known, and the routes of both. `same_recipe` and `same_data` are the keys and splits that do not differ."""

    recipe: tuple[KeyChange, ...] = ()
    data: tuple[SplitChange, ...] = ()
    metrics: tuple[MetricChange, ...] = ()
    seconds: tuple[float, float] | None = None
    routing: tuple[RouteChange, ...] = ()
    same_recipe: tuple[KeyChange, ...] = ()
    same_data: tuple[SplitChange, ...] = ()

    @property
    def is_different(self) -> bool:
        """Whether anything differs that a repetition of a run does not change."""
        return bool(self.recipe or self.data or self.changed_metrics)

    @property
    def changed_metrics(self) -> list[MetricChange]:
        """The metrics that differ, the most important first: accuracies, errors, losses, and others."""
        found = [each for each in self.metrics if each.before != each.after]
        return sorted(found, key=lambda each: rank_metric(each.metric))


def rank_metric(metric: str) -> int:
    """Return the rank of a metric among others: accuracies, errors, total losses, losses, and others."""
    larger = is_larger_better(metric)
    if larger is None:
        return 4
    return 0 if larger else 3 if "loss" in metric.split(".") else 2 if metric.endswith(TOTAL) else 1


def compare_keys(before: Mapping[str, Any], after: Mapping[str, Any], same: bool = False) -> tuple[KeyChange, ...]:
    """Return the keys with other values, or with the `same`, in the order of the recipes."""
    keys = dict.fromkeys((*before, *after))
    pairs = ((key, before.get(key), after.get(key)) for key in keys)
    return tuple(KeyChange(*each) for each in pairs if (each[1] == each[2] and type(each[1]) is type(each[2])) is same)


def compare_splits(before: Splits, after: Splits, same: bool = False) -> tuple[SplitChange, ...]:
    """Return the splits with other examples, or with the `same`."""
    names = [name for name in dict.fromkeys((*before, *after)) if (before.get(name) == after.get(name)) is same]
    counts = ((split["examples"] if (split := side.get(name)) else None for side in (before, after)) for name in names)
    return tuple(SplitChange(name, *each) for name, each in zip(names, counts, strict=True))


def compare_metrics(before: Metrics, after: Metrics) -> tuple[MetricChange, ...]:
    """Return all metrics of either run."""
    return tuple(MetricChange(name, before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after)))


def compare_traces(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[RouteChange, ...]:
    """Return the routes of two traces, as in trace.json, by the load of their modules."""
    both = [name for name in before["routes"] if name in after["routes"]]
    facts = ([_read_trace(trace["routes"][name]) for trace in (before, after)] for name in both)
    return tuple(RouteChange(name, "trace", *each) for name, each in zip(both, facts, strict=True))


def _read_trace(route: Mapping[str, Any]) -> RouteFacts:
    load, entropies = route["load"], route["entropies"]
    total = sum(load)
    shares = tuple(each / total if total else 0.0 for each in load)
    return RouteFacts(entropies["of_a_decision"], entropies["of_the_mean"], shares)


def compare_controllers(before: Metrics, after: Metrics) -> tuple[RouteChange, ...]:
    """Return the routes that both measure as metrics: `H_a`, `H_b` and the share of each module, `use.0` and on."""
    old, new = (dict(_read_controllers(each)) for each in (before, after))
    return tuple(RouteChange(name, "metrics", old[name], new[name]) for name in old if name in new)


def _read_controllers(metrics: Metrics) -> Iterator[tuple[str, RouteFacts]]:
    for name in metrics:
        route, _, measure = name.rpartition(".")
        if measure == "H_a":
            shares = list[float]()
            while (share := metrics.get(f"{route}.use.{len(shares)}")) is not None:
                shares.append(share)
            yield route, RouteFacts(metrics[name], metrics.get(f"{route}.H_b"), tuple(shares))


def is_of_controller(metric: str) -> bool:
    """Whether a metric belongs to a route: `test.H_a`, `test.use.0`."""
    names = metric.split(".")
    return names[-1] in ("H_a", "H_b") or names[-2:-1] == ["use"]
