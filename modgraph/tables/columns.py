"""The columns of a table: those that a layout lists, or the main metrics and costs that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from modgraph.tables.facts import COSTS, RunFacts
from modgraph.tables.keys import freeze
from modgraph.tables.layout import TableLayout
from modgraph.tables.metrics import is_larger_better, is_main, is_share, rank_metrics
from modgraph.tables.numbers import format_value, order_of
from modgraph.tables.table import Column, as_tuple

FULL = 100  # letters of a terminal's line
COMMON = 0.5  # the share of runs that have a metric, for it to be a main one
MOST_METRICS = 3  # before the costs
RUNS = "runs"  # the column with the number of runs
MAIN_COSTS = ("active_macs", "seconds", "parameters")


def list_columns(layout: TableLayout, runs: Sequence[RunFacts]) -> list[Column]:
    """List the columns of a layout, one for each value of its `across` key; none if it lists none."""
    given = layout.columns
    named = dict(given) if isinstance(given, Mapping) else {key: key for key in as_tuple(given)}
    return spread_columns([_make_column(heading, key) for heading, key in named.items()], layout, runs)


def _make_column(heading: str, key: str) -> Column:
    return Column(heading, key, None if key in COSTS or key == RUNS else is_larger_better(key))


def spread_columns(columns: Sequence[Column], layout: TableLayout, runs: Sequence[RunFacts]) -> list[Column]:
    """Return each column once for each value of the layout's `across` key, as percentages where the layout says so.
    With a single column, the values are the headings."""
    percent = layout.percent
    named = as_tuple(percent) if isinstance(percent, tuple) else ()
    columns = [
        replace(each, is_percent=each.heading in named or (percent is True and is_share(each.key))) for each in columns
    ]
    if layout.across is None:
        return columns
    key = layout.across
    values = list({freeze(run.find(key)): run.find(key) for run in runs}.values())
    if all(isinstance(value, int | float) for value in values):
        values.sort(key=order_of)
    return [
        replace(each, heading=_head_value(value, each, len(columns)), across=key, at=value)
        for value in values
        for each in columns
    ]


def _head_value(value: object, column: Column, count: int) -> str:
    text = format_value(value)
    return text if count == 1 else f"{text} {column.heading}"


def list_candidates(runs: Sequence[RunFacts]) -> list[Column]:
    """List what a table may have if its layout lists no columns: the main metrics, and costs that differ."""
    metrics = [name for name in rank_metrics(runs) if is_main(name)]
    tested = [name for name in metrics if any(name in run.metrics for run in runs)]
    metrics = tested or metrics
    metrics = _drop_equal(metrics, runs)
    counts = {name: sum(run.find(name) is not None for run in runs) for name in metrics}
    metrics.sort(key=lambda name: counts[name] < COMMON * len(runs))
    costs = [name for name in MAIN_COSTS if len({run.find(name) for run in runs} - {None}) > 1]
    if not costs and any(run.find("seconds") is not None for run in runs):
        costs = ["seconds"]
    done = [] if all(run.is_finished for run in runs) else ["epochs"]
    ordered = [*metrics[:MOST_METRICS], *done, *costs, *metrics[MOST_METRICS:]]
    return [_make_column(name, name) for name in ordered]


def _drop_equal(metrics: Sequence[str], runs: Sequence[RunFacts]) -> list[str]:
    """Drop metrics that equal an earlier one in every run but for rounding, as the total of a single loss does."""
    found: dict[tuple[object, ...], str] = {}
    for name in metrics:
        numbers = (run.find(name) for run in runs)
        found.setdefault(tuple(None if number is None else f"{number:.4g}" for number in numbers), name)
    return list(found.values())
