"""A table as texts: a header, and the texts of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from modgraph.tables.marks import BEST, CLOSE
from modgraph.tables.numbers import format_p
from modgraph.tables.table import Cell, Table

GAP = 2  # blanks between columns


@dataclass(frozen=True)
class Text:
    """The text of a cell, whether it is the best, and its mark."""

    text: str
    mark: str = ""

    @property
    def is_best(self) -> bool:
        return self.mark == BEST

    def __str__(self) -> str:
        return f"{self.text} {self.mark}".rstrip()


@dataclass(frozen=True)
class Grid:
    """Headings, rows of texts, and which columns are numbers, which stand to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    numeric: tuple[bool, ...]

    @cached_property
    def widths(self) -> list[int]:
        columns = zip(*(map(str, row) for row in self.rows), strict=True) if self.rows else [() for _ in self.header]
        return [max(map(len, (heading, *texts))) for heading, texts in zip(self.header, columns, strict=True)]


def make_grid(table: Table) -> Grid:
    """Return the texts of a table: its keys, the number of runs where a row has several, then columns, each followed by
    p where there are tests."""
    counts = [row.count for row in table.rows]
    has_counts = any(count > 1 for count in counts) and all(column.key != "runs" for column in table.columns)
    tested = [table.has_p(at) for at in range(len(table.columns))]
    header, numeric = (
        [*table.header],
        [_is_numeric([row.values[at] for row in table.rows]) for at in range(len(table.keys))],
    )
    header += ["runs"] if has_counts else []
    numeric += [True] if has_counts else []
    for column, has_p in zip(table.columns, tested, strict=True):
        header += [column.heading + column.arrow, *(["p"] if has_p else [])]
        numeric += [True, *([True] if has_p else [])]
    rows = []
    for row, count in zip(table.rows, counts, strict=True):
        texts = [*map(Text, row.texts), *([Text(str(count))] if has_counts else [])]
        for cell, has_p in zip(row.cells, tested, strict=True):
            texts += [Text(cell.text, _mark(cell)), *([Text(format_p(cell.p))] if has_p else [])]
        rows.append(tuple(texts))
    return Grid(tuple(header), tuple(rows), tuple(numeric))


def measure_width(table: Table) -> int:
    """Return the letters of a table's lines in a terminal."""
    widths = make_grid(table).widths
    return sum(widths) + GAP * (len(widths) - 1)


def _mark(cell: Cell) -> str:
    return BEST if cell.is_best else CLOSE if cell.is_close else ""


def _is_numeric(values: Sequence[object]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
