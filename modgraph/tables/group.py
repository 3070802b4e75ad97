"""Makes tables of runs: rows by what differs, the mean and deviation over seeds, the best marked and tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from modgraph.diagnostics import ModgraphError, did_you_mean, list_names
from modgraph.tables import errors
from modgraph.tables.columns import FULL, list_columns, pick_columns
from modgraph.tables.facts import STATE, RunFacts
from modgraph.tables.keys import choose_keys, find_differences, list_seeds, shorten_keys, split_by, value_of
from modgraph.tables.layout import TableLayout
from modgraph.tables.marks import mark_best, note_marks, test_column
from modgraph.tables.metrics import is_larger_better, is_share
from modgraph.tables.numbers import NONE, choose_digits, format_number, format_value
from modgraph.tables.select import check_keys, order_of, select, sort
from modgraph.tables.table import Cell, Column, Row, Table, as_tuple

DEFAULT = TableLayout()
RUNS = "runs"  # the column with the number of runs
MAIN = "main"


def make_table(runs: Sequence[RunFacts], layout: TableLayout = DEFAULT, title: str = "", width: int = FULL) -> Table:
    """Make a table of the finished ones of some runs. Columns that the layout does not list are those that fit into
    `width` letters. Raises `ModgraphError`."""
    among = select_runs(runs, layout)
    finished = [run for run in among if run.is_finished]
    if not finished:
        raise ModgraphError([_explain_nothing(among or runs, bool(among))])
    check_keys(runs, list_keys(layout))
    differing = find_differences(finished)
    keys = as_tuple(layout.rows) if layout.rows is not None else tuple(choose_keys(finished, differing))
    keys = tuple(key for key in keys if key != layout.across) if layout.rows is None else keys
    maker = _Maker(layout, finished, split_by(finished, keys))
    columns, notes = maker.choose_columns(keys, width)
    rows = [
        Row(tuple(value_of(part[0], key) for key in keys), maker.format_keys(part[0], keys), tuple(part))
        for part in maker.parts.values()
    ]
    cells = [maker.fill_column(column) for column in columns]
    rows = [replace(row, cells=tuple(column[at] for column in cells)) for at, row in enumerate(rows)]
    names = shorten_keys(keys)
    notes = [*note_marks(rows, columns, layout), *maker.notes, *notes]
    notes += _note_hidden(finished, keys, differing, layout) + _note_states(among, finished)
    rows = _sort_rows(rows, keys, columns, layout)
    return Table(layout.title or title, keys, tuple(names[key] for key in keys), tuple(columns), tuple(rows), tuple(notes))


def select_runs(runs: Sequence[RunFacts], layout: TableLayout) -> list[RunFacts]:
    """Return the runs that a layout takes, whatever their state. Raises `ModgraphError`."""
    of = as_tuple(layout.of)
    known = sorted({run.sweep for run in runs if run.sweep})
    for name in of:
        if name not in known:
            suggestion = did_you_mean(name, known, "its sweeps are: {known}")
            raise ModgraphError([errors.UnknownKey(key=name, place=" as its sweep", suggestion=suggestion)])
    return select([run for run in runs if not of or run.sweep in of], as_tuple(layout.where))


def list_keys(layout: TableLayout) -> list[str]:
    """List the keys that a layout names."""
    columns = layout.columns.values() if isinstance(layout.columns, Mapping) else as_tuple(layout.columns)
    single = [key for key in (layout.across, layout.choose) if key is not None]
    return [key for key in (*as_tuple(layout.rows), *columns, *single, *as_tuple(layout.over)) if key != RUNS]
