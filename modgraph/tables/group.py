"""Makes tables of runs: rows by what differs, the mean and deviation over seeds, the best marked and tested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.frozen import replace_fields
from modgraph.tables import errors, notes
from modgraph.tables.cells import Filler
from modgraph.tables.columns import FULL, RUNS, list_candidates, list_columns, spread_columns
from modgraph.tables.facts import RUN, STATE, RunFacts
from modgraph.tables.grid import measure_width
from modgraph.tables.keys import choose_keys, find_differences, shorten_keys, split_by, value_of
from modgraph.tables.layout import TableLayout, make_layout
from modgraph.tables.marks import find_against, mark_best, note_marks, test_column
from modgraph.tables.numbers import format_value, order_of
from modgraph.tables.select import check_keys, refuse_unknown, select, sort
from modgraph.tables.table import Column, Row, Table, as_tuple

DEFAULT = make_layout()
OF_KEYS = 60  # letters of the keys of a list
Width = Callable[[Table], int]


def make_table(runs: Sequence[RunFacts], layout: TableLayout = DEFAULT, title: str = "", width: int = FULL) -> Table:
    """Make a table of the finished ones of some runs. Columns that the layout does not list are those that fit into
    `width` letters. Raises `ModgraphError`."""
    among = select_runs(runs, layout)
    finished = [run for run in among if run.is_finished]
    if not finished:
        raise ModgraphError([_explain_nothing(runs, among, layout)])
    check_keys(among, notes.list_keys(layout))
    differing = [key for key in find_differences(finished) if key != layout.across]
    keys = as_tuple(layout.rows) if layout.rows is not None else tuple(choose_keys(finished, differing))
    table, said = _Maker(layout, finished, title, width).make(keys)
    said = [*note_marks(table, layout), *said, *notes.note_keys(finished, keys, differing, layout)]
    return replace(table, notes=(*said, *notes.note_states(among)))


def make_list(runs: Sequence[RunFacts], layout: TableLayout = DEFAULT, title: str = "", width: int = FULL) -> Table:
    """Make a table with a row for each run, whatever its state. Raises `ModgraphError`."""
    among = select_runs(runs, layout)
    if not among:
        raise ModgraphError([_explain_nothing(runs, among, layout)])
    check_keys(among, notes.list_keys(layout))
    keys = [RUN, STATE]
    maker = _Maker(replace_layout(layout), sort(among, layout.sort) if layout.sort else among, title, width)
    readable = [run for run in among if run.settings]
    for key in choose_keys(readable, find_differences(readable)):
        if measure_width(maker.make_empty((*keys, key))) <= OF_KEYS:
            keys.append(key)
    table, said = maker.make(tuple(keys))
    return replace(table, notes=(*note_marks(table, maker.layout), *said, *notes.note_reasons(among)))


def replace_layout(layout: TableLayout) -> TableLayout:
    """Return the layout of a list: each run is a row, in the order of the runs, so nothing is averaged or tested."""
    return replace_fields(layout, sort=None, test=False, choose=None, over=None, across=None)


def select_runs(runs: Sequence[RunFacts], layout: TableLayout) -> list[RunFacts]:
    """Return the runs that a layout takes, whatever their state. Raises `ModgraphError`."""
    of = as_tuple(layout.of)
    known = dict.fromkeys(run.sweep for run in runs if run.sweep)
    refuse_unknown(of, known, " as its sweep")
    return select([run for run in runs if not of or run.sweep in of], as_tuple(layout.where))


def _explain_nothing(runs: Sequence[RunFacts], among: Sequence[RunFacts], layout: TableLayout) -> errors.NothingFits:
    if not among:
        return errors.NothingFits.explain_conditions(len(runs), as_tuple(layout.where))
    way_out = "wait for them, or list them: modgraph runs --list"
    return errors.NothingFits(count=len(among), problem="is finished", way_out=way_out)


@dataclass(frozen=True)
class _Maker:
    """Makes a table of runs by a layout."""

    layout: TableLayout
    runs: Sequence[RunFacts]
    title: str
    width: int

    def make(self, keys: tuple[str, ...]) -> tuple[Table, list[str]]:
        """Make a table with rows by keys, and what is to be said of its columns."""
        table = self.make_empty(keys)
        columns = list_columns(self.layout, self.runs)
        if columns:
            for column in columns:
                table = self._add(table, column)
            return self._sort(table), notes.note_lengths(self.runs, columns)
        candidates = spread_columns(list_candidates(self.runs), self.layout, self.runs)
        for column in candidates:
            wider = self._add(table, column)
            if not table.columns or measure_width(wider) <= self.width:
                table = wider
        said = [*notes.note_lengths(self.runs, table.columns), *notes.note_left_out(self.runs, table.columns)]
        return self._sort(table), said

    def make_empty(self, keys: tuple[str, ...]) -> Table:
        """Make a table without columns."""
        parts = split_by(self.runs, keys).values()
        values = [tuple(value_of(part[0], key) for key in keys) for part in parts]
        rows = [
            Row(each, tuple(map(format_value, each)), tuple(part)) for each, part in zip(values, parts, strict=True)
        ]
        short = shorten_keys(keys)
        return Table(self.layout.title or self.title, keys, tuple(short[key] for key in keys), (), tuple(rows))

    def _add(self, table: Table, column: Column) -> Table:
        """Add a column, marked and tested."""
        cells = Filler(self.layout).fill(column, [row.runs for row in table.rows])
        if self.layout.best:
            cells = mark_best(column, cells)
        cells = test_column(column, cells, self.layout, find_against(table.rows, self.layout))
        rows = [replace(row, cells=(*row.cells, cell)) for row, cell in zip(table.rows, cells, strict=True)]
        return replace(table, columns=(*table.columns, column), rows=tuple(rows))

    def _sort(self, table: Table) -> Table:
        """Sort the rows by a key, a heading or a column's key; those without it come last. Raises `ModgraphError`."""
        if self.layout.sort is None:
            return table
        key, down = self.layout.sort.removeprefix("-"), self.layout.sort.startswith("-")
        places = {name: at for at, column in enumerate(table.columns) for name in (column.heading, column.key)}
        if key not in (*places, RUNS):
            check_keys(self.runs, [key])

        def find(row: Row) -> Any:
            if key in places:
                return row.cells[places[key]].mean
            return row.count if key == RUNS else row.runs[0].find(key)

        known = [row for row in table.rows if find(row) is not None]
        known.sort(key=lambda row: order_of(find(row)), reverse=down)
        return replace(table, rows=(*known, *(row for row in table.rows if find(row) is None)))
