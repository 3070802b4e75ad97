"""Writes tables of runs as HTML: in notebooks, and in pages, whose style sheet aligns them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from modgraph.inspect.notebook import MOST_ROWS, frame_table
from modgraph.inspect.quote import escape_html
from modgraph.tables.grid import Grid, Text, make_grid
from modgraph.tables.table import Table

RIGHT_IN_NOTEBOOK = ' style="text-align: right; font-variant-numeric: tabular-nums"'
RIGHT = ' class="numeric"'


def render_html(table: Table) -> str:
    """Render a table as HTML without scripts, the best cells bold, and at most the first rows."""
    grid = make_grid(table)
    left = len(grid.rows) - MOST_ROWS
    title = f"<caption>{escape_html(table.title)}</caption>" if table.title else ""
    notes = [escape_html(note.replace("*: the best", "bold: the best")) for note in table.notes]
    notes = [f"and {left:,} more rows", *notes] if left > 0 else notes
    below = f"<p>{'<br>'.join(notes)}</p>" if notes else ""

    def write_cell(each: Text, at: int) -> str:
        return f"<b>{escape_html(each.text)}</b>" if each.is_best else escape_html(str(each))

    rows = _write_rows(grid, grid.rows[:MOST_ROWS], write_cell, RIGHT_IN_NOTEBOOK)
    return f"{frame_table(f'<table>{title}{rows}</table>')}{below}"


def write_table(table: Table) -> str:
    """Write a table for a page, the best cells bold; marks have room of their own."""
    grid = make_grid(table)
    marked = [any(row[at].mark for row in grid.rows) for at in range(len(grid.header))]

    def write_cell(each: Text, at: int) -> str:
        text = escape_html(each.text)
        mark = f'<span class="mark">{escape_html(each.mark)}</span>' if marked[at] else ""
        return (f"<b>{text}</b>" if each.is_best else text) + mark

    return f'<table class="results">{_write_rows(grid, grid.rows, write_cell, RIGHT)}</table>'


def _write_rows(grid: Grid, rows: Sequence[Sequence[Text]], write_cell: Callable[[Text, int], str], right: str) -> str:
    """Write the head and the body of a table; `right` is the attribute of numeric cells."""
    styles = [right if is_numeric else "" for is_numeric in grid.numeric]
    head = "".join(f"<th{style}>{escape_html(text)}</th>" for text, style in zip(grid.header, styles, strict=True))
    written = ([f"<td{styles[at]}>{write_cell(each, at)}</td>" for at, each in enumerate(row)] for row in rows)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in written)
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
