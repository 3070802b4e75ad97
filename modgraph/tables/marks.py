"""Marks the best of each column, and tests the others against it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.extras import EXTRAS, require
from modgraph.tables import errors
from modgraph.tables.layout import TableLayout
from modgraph.tables.significance import LEVEL, TEST, can_test, compute_p, is_testable
from modgraph.tables.table import Cell, Column, Row, Table

BEST, CLOSE = "*", "≈"
PACKAGES = " and ".join(EXTRAS["tables"])
WITHOUT = f"no p: {TEST} needs the packages {PACKAGES}: pip install 'modgraph-compiler[tables]'"
Cells = list[Cell]


def mark_best(column: Column, cells: Cells) -> Cells:
    """Mark the best cells of a column in which larger or smaller is better, if there are two to compare."""
    averages = [cell.mean for cell in cells if cell.mean is not None and math.isfinite(cell.mean)]
    if column.larger_is_better is None or len(averages) < 2:
        return cells
    best = max(averages) if column.larger_is_better else min(averages)
    return [replace(cell, is_best=cell.mean == best) for cell in cells]


def test_column(column: Column, cells: Cells, layout: TableLayout, against: int | None) -> Cells:
    """Test the cells of a column against the best one, or against that of a given row; those that are not
    significantly worse than the best are close to it. Of several that are best, none is tested, and one of most runs is
    the base, the same whatever the order of rows."""
    if column.larger_is_better is None or not layout.test or not can_test():
        return cells
    several = (at for at, cell in enumerate(cells) if cell.is_best)
    best = max(several, key=lambda at: (cells[at].count, sorted(cells[at].values)), default=None)
    base = best if against is None else against
    if base is None:
        return cells
    found = []
    for at, cell in enumerate(cells):
        is_base = cell.is_best if against is None else at == base
        p = None if is_base else compute_p(cell.values, cells[base].values)
        is_close = against is None and p is not None and p >= LEVEL
        found.append(replace(cell, p=p, is_close=is_close))
    return found


def find_against(rows: Sequence[Row], layout: TableLayout) -> int | None:
    """Return the place of the row that a layout tests against; None for the best one. Raises `ModgraphError`, also
    without the packages of the test."""
    if layout.against is None:
        return None
    require("tables", TEST, "leave out against")
    names = [", ".join(row.texts) for row in rows]
    firsts = [row.texts[0] if row.texts else "" for row in rows]
    for known in (names, firsts):
        if layout.against in known:
            return known.index(layout.against)
    suggestion = did_you_mean(layout.against, names, "its rows are: {known}")
    raise ModgraphError([errors.UnknownRow(name=layout.against, suggestion=suggestion)])


def note_marks(table: Table, layout: TableLayout) -> list[str]:
    """Write what ±, the marks and p mean, of those that a table has, and what a test lacks."""
    cells = [cell for row in table.rows for cell in row.cells]
    notes = ["±: standard deviation over runs (n − 1)"] if any("±" in cell.text for cell in cells) else []
    marks = [f"{BEST}: the best"] if any(cell.is_best for cell in cells) else []
    marks += [f"{CLOSE}: not significantly worse (p ≥ {LEVEL})"] if any(cell.is_close for cell in cells) else []
    notes += [", ".join(marks)] if marks else []
    if any(cell.p is not None for cell in cells):
        row = "the best row" if layout.against is None else f'the row "{layout.against}"'
        notes.append(f"p: {TEST} against {row}, two-sided")
    elif layout.test and not can_test() and _could_test(table):
        notes.append(WITHOUT)
    return notes


def _could_test(table: Table) -> bool:
    judged = [at for at, column in enumerate(table.columns) if column.larger_is_better is not None]
    return any(sum(is_testable(row.cells[at].values) for row in table.rows) > 1 for at in judged)
