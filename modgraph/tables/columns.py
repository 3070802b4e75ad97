"""The columns of a table: those that a layout lists, or the main metrics and costs that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modgraph.tables.facts import COSTS, RunFacts
from modgraph.tables.layout import TableLayout
from modgraph.tables.metrics import is_larger_better, is_main, rank_metrics
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
    return spread_columns([make_column(heading, key) for heading, key in named.items()], layout, runs)


def make_column(heading: str, key: str) -> Column:
    """Make the column of a key."""
    return Column(heading, key, None if key in COSTS or key == RUNS else is_larger_better(key))


def spread_columns(columns: Sequence[Column], layout: TableLayout, runs: Sequence[RunFacts]) -> list[Column]:
    """Return each column once for each value of the layout's `across` key; with one column, headings are the values."""
    if layout.across is None:
        return list(columns)
    key = layout.across
    values = list({format_value(run.find(key)): run.find(key) for run in runs}.values())
    if all(isinstance(value, int | float) for value in values):
        values.sort(key=order_of)

    def make_heading(column: Column, value: object) -> str:
        text = format_value(value)
        return text if len(columns) == 1 else f"{text} {column.heading}"

    return [
        Column(make_heading(column, value), column.key, column.larger_is_better, key, value)
        for value in values
        for column in columns
    ]


def list_candidates(runs: Sequence[RunFacts]) -> list[Column]:
    """List what a table may have if its layout lists no columns: the main metrics, and costs that differ."""
    metrics = [name for name in rank_metrics(runs) if is_main(name)]
    tested = [name for name in metrics if any(name in run.metrics for run in runs)]
    metrics = tested or metrics
    counts = {name: sum(run.find(name) is not None for run in runs) for name in metrics}
    metrics.sort(key=lambda name: counts[name] < COMMON * len(runs))
    costs = [name for name in MAIN_COSTS if len({run.find(name) for run in runs} - {None}) > 1]
    if not costs and any(run.find("seconds") is not None for run in runs):
        costs = ["seconds"]
    ordered = [*metrics[:MOST_METRICS], *costs, *metrics[MOST_METRICS:]]
    return [make_column(name, name) for name in ordered]
