"""Renders tables as text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from modgraph.store.records import json_text
from modgraph.tables.columns import FULL
from modgraph.tables.grid import GAP, Grid, Text, make_grid
from modgraph.tables.table import Table


def render_text(tables: Sequence[Table]) -> str:
    """Render tables for a terminal, the best cells with an asterisk."""
    return "\n\n".join(map(_render_text, tables))


def _render_text(table: Table) -> str:
    grid = make_grid(table)

    def align(texts: Sequence[object]) -> str:
        cells = zip(map(str, texts), grid.widths, grid.numeric, strict=True)
        return (
            (" " * GAP).join(text.rjust(width) if right else text.ljust(width) for text, width, right in cells).rstrip()
        )

    title = [table.title, ""] if table.title else []
    below = (
        ["", *(line for note in table.notes for line in wrap(note, FULL, subsequent_indent="  "))]
        if table.notes
        else []
    )
    lines = ["─" * width for width in grid.widths]
    return "\n".join([*title, align(grid.header), align(lines), *map(align, map(_pad_marks(grid), grid.rows)), *below])


def _pad_marks(grid: Grid) -> Callable[[Sequence[Text]], list[str]]:
    """Return what keeps room for marks, so that the numbers of a column stand below each other."""
    marked = [any(row[at].mark for row in grid.rows) for at in range(len(grid.header))]
    return lambda row: [
        f"{each.text} {each.mark or ' '}" if mark else each.text for each, mark in zip(row, marked, strict=True)
    ]


def render_markdown(tables: Sequence[Table]) -> str:
    """Render tables in Markdown, the best cells bold."""
    return "\n\n".join(map(_render_markdown, tables))


def _render_markdown(table: Table) -> str:
    grid = make_grid(table)

    def line(texts: Sequence[str]) -> str:
        return f"| {' | '.join(text.replace('|', '&#124;') for text in texts)} |"

    title = [f"**{table.title}**", ""] if table.title else []
    rule = ["---:" if right else "---" for right in grid.numeric]
    rows = [line([f"**{each.text}**" if each.is_best else str(each) for each in row]) for row in grid.rows]
    notes = [note.replace("*: the best", "**bold**: the best") for note in table.notes]
    below = ["", *wrap("; ".join(notes), FULL)] if notes else []
    return "\n".join([*title, line(grid.header), f"|{'|'.join(rule)}|", *rows, *below])


def render_csv(tables: Sequence[Table]) -> str:
    """Render tables as CSV, with unrounded numbers; several follow each other, each below a line with its title."""
    text = io.StringIO()
    for table in tables:
        records = table.list_records()
        if len(tables) > 1:
            text.write(f"# {table.title}\n")
        writer = csv.DictWriter(text, list(records[0]) if records else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    return text.getvalue().rstrip("\n")


def as_json(table: Table) -> dict[str, Any]:
    """Return a table as JSON: `title`, `keys`, `columns`, `rows` (`key`, `runs`, `cells`), `notes`."""
    columns = [
        {"heading": each.heading, "key": each.key, "larger_is_better": each.larger_is_better} for each in table.columns
    ]
    facts = ("text", "mean", "deviation", "count", "missing", "p", "is_best")
    rows = [
        {
            "key": dict(zip(table.keys, row.values, strict=True)),
            "runs": [str(run.path) for run in row.runs],
            "cells": [{name: getattr(cell, name) for name in facts} for cell in row.cells],
        }
        for row in table.rows
    ]
    return {
        "title": table.title,
        "keys": list(table.keys),
        "columns": columns,
        "rows": rows,
        "notes": list(table.notes),
    }


def render_json(tables: Sequence[Table]) -> str:
    """Render tables as one JSON object."""
    return json_text({"tables": [as_json(table) for table in tables]}, indent=2)


FORMATS: Mapping[str, Callable[[Sequence[Table]], str]] = {
    "text": render_text,
    "markdown": render_markdown,
    "csv": render_csv,
    "json": render_json,
}
