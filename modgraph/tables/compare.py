"""Compares two runs, or two groups of runs: settings, costs, and metrics with a test of their difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.diff.runs_diff import is_of_controller
from modgraph.tables.errors import NoRunToCompare
from modgraph.tables.facts import COSTS, FINISHED, UNFINISHED, RunFacts
from modgraph.tables.keys import find_differences, freeze, list_seeds, value_of
from modgraph.tables.metrics import is_larger_better, rank_metrics
from modgraph.tables.numbers import is_number, order_of
from modgraph.tables.significance import LEVEL, PAIRED, TEST, can_test, compute_p, compute_paired_p

Sides = tuple["Group", "Group"]


@dataclass(frozen=True)
class Group:
    """Runs under a name. `counted` are those that are finished; the unfinished ones if none is."""

    name: str
    runs: Sequence[RunFacts]

    @property
    def counted(self) -> list[RunFacts]:
        finished = [run for run in self.runs if run.state == FINISHED]
        return finished or [run for run in self.runs if run.state == UNFINISHED]

    @property
    def left_out(self) -> Counter[str]:
        """How many runs do not count, by their state."""
        counted = {id(run) for run in self.counted}
        return Counter(run.state for run in self.runs if id(run) not in counted)


@dataclass(frozen=True)
class Sample:
    """Numbers of the runs of a group."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        return fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation (n − 1)."""
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class SettingChange:
    """A key, and its values in each group."""

    key: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]


@dataclass(frozen=True)
class Quantity:
    """A cost or a metric of both groups, and the `p` of a test of its difference; None without one."""

    key: str
    before: Sample
    after: Sample
    p: float | None = None

    @property
    def difference(self) -> float | None:
        old, new = self.before.mean, self.after.mean
        return None if old is None or new is None else new - old

    @property
    def better(self) -> Literal["before", "after"] | None:
        """The group with the better mean; None if they are equal or neither is better."""
        larger = None if self.key in COSTS else is_larger_better(self.key)
        if larger is None or not self.difference:
            return None
        return "after" if (self.difference > 0) is larger else "before"

    @property
    def is_significant(self) -> bool:
        return self.p is not None and self.p < LEVEL


@dataclass(frozen=True)
class GroupsCompared:
    """Two groups: settings that differ between them, their costs, metrics that say how good they are, and those of
    routers.

    `test` is the test that gives p, None without one. A paired test compares runs with equal values of `paired_by`.
    """

    groups: Sides
    settings: tuple[SettingChange, ...]
    costs: tuple[Quantity, ...]
    metrics: tuple[Quantity, ...]
    routing: tuple[Quantity, ...]
    test: str | None
    paired_by: tuple[str, ...]


def compare_groups(before: Sequence[RunFacts], after: Sequence[RunFacts], names: tuple[str, str]) -> GroupsCompared:
    """Compare two groups of runs under their names. Raises `ModgraphError` where a group has no run to count."""
    groups = Group(names[0], before), Group(names[1], after)
    _refuse_empty(groups)
    first, second = groups[0].counted, groups[1].counted
    runs = [*first, *second]
    keys = [*find_differences(runs), *sorted(list_seeds(runs))]
    values = {key: (_list_values(first, key), _list_values(second, key)) for key in keys}
    differing = [key for key in keys if {*map(freeze, values[key][0])} != {*map(freeze, values[key][1])}]
    shared = [key for key in keys if key not in differing]
    paired_by = tuple(key for key in shared if len(_list_values(runs, key)) > 1)
    pairs = _pair(first, second, paired_by)

    def measure(names: Iterable[str], tested: bool = True) -> tuple[Quantity, ...]:
        found = (_measure(key, (first, second), pairs, tested and can_test()) for key in names)
        return tuple(each for each in found if each.before.values and each.after.values)

    known = _list_metrics(runs)
    metrics = measure(key for key in rank_metrics(runs) if key in known)
    routing = measure(filter(is_of_controller, known))
    test = (PAIRED if pairs else TEST) if any(each.p is not None for each in (*metrics, *routing)) else None
    settings = tuple(SettingChange(key, *values[key]) for key in differing)
    return GroupsCompared(groups, settings, measure(COSTS, False), metrics, routing, test, paired_by if pairs else ())


def _refuse_empty(groups: Sides) -> None:
    """Raises `ModgraphError` for a group without a run to count."""
    empty = [group for group in groups if not group.counted]
    if empty:
        raise ModgraphError(NoRunToCompare(name=group.name, states=describe_states(group)) for group in empty)


def describe_states(group: Group) -> str:
    """Count the runs of a group that do not count, by state."""
    return ", ".join(f"{count} {state}" for state, count in group.left_out.items()) or "none"


def _list_values(runs: Iterable[RunFacts], key: str) -> tuple[Any, ...]:
    """List the different values of a key, in order."""
    found = {freeze(value): value for value in (value_of(run, key) for run in runs)}
    return tuple(sorted(found.values(), key=order_of))


def _pair(
    first: Sequence[RunFacts], second: Sequence[RunFacts], keys: Sequence[str]
) -> list[tuple[RunFacts, RunFacts]]:
    """Pair the runs of two groups that have equal values of some keys. Empty unless each has exactly one partner."""
    found = [{tuple(freeze(value_of(run, key)) for key in keys): run for run in runs} for runs in (first, second)]
    is_one_to_one = len(found[0]) == len(first) == len(second) and found[0].keys() == found[1].keys()
    return [(run, found[1][key]) for key, run in found[0].items()] if is_one_to_one and len(first) > 1 else []


def _list_metrics(runs: Sequence[RunFacts]) -> dict[str, None]:
    """List the metrics of finished runs; with unfinished ones, those of the logs too."""
    ended = all(run.is_finished for run in runs)
    return dict.fromkeys(key for run in runs for key in (run.metrics if ended else {**run.metrics, **run.latest}))


def _measure(
    key: str, sides: Sequence[Sequence[RunFacts]], pairs: Sequence[tuple[RunFacts, RunFacts]], tested: bool
) -> Quantity:
    """Return a cost or metric of both groups, of pairs only where both runs have it."""
    if pairs:
        both = [tuple(_find_number(run, key) for run in pair) for pair in pairs]
        before, after = ([pair[at] for pair in both if None not in pair] for at in (0, 1))
    else:
        before, after = ([_find_number(run, key) for run in runs] for runs in sides)
    first, second = (Sample(tuple(number for number in each if number is not None)) for each in (before, after))
    compute = compute_paired_p if pairs else compute_p
    return Quantity(key, first, second, compute(first.values, second.values) if tested else None)


def _find_number(run: RunFacts, key: str) -> float | None:
    found = run.find(key)
    return found if is_number(found) else None
