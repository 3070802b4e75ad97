"""A table of runs: rows of runs that share a key, and of each column the mean, the deviation and the number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from modgraph.tables.facts import RunFacts
from modgraph.tables.numbers import NONE


@dataclass(frozen=True)
class Column:
    """A column: `key` is what `RunFacts.find` takes, of runs whose key `across` has the value `at`, if there is one.

    `larger_is_better` is None for a column in which neither is better, such as a cost. One that `is_percent` prints
    shares as percentages.
    """

    heading: str
    key: str
    larger_is_better: bool | None = None
    is_percent: bool = False
    across: str | None = None
    at: Any = None

    def takes(self, run: RunFacts) -> bool:
        """Whether the column has a run of its row."""
        return self.across is None or run.find(self.across) == self.at

    @property
    def arrow(self) -> str:
        """What follows its heading: % for percentages, and an arrow in the direction of better values."""
        arrow = {True: " ↑", False: " ↓", None: ""}[self.larger_is_better]
        return f"{' %' if self.is_percent else ''}{arrow}"


@dataclass(frozen=True)
class Cell:
    """What a column has of a row: the `mean` of `values`, their standard `deviation` (n − 1), their `count`.

    `text` is the mean and the deviation as they print. `missing` runs of the row have no value. `p` is that of the
    test against the best row. A cell that holds no numbers has only its text.
    """

    text: str = ""
    values: tuple[float, ...] = ()
    mean: float | None = None
    deviation: float | None = None
    missing: int = 0
    p: float | None = None
    is_best: bool = False
    is_close: bool = False  # not significantly worse than the best

    @property
    def count(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Row:
    """Runs that share the `values` of the table's keys."""

    values: tuple[Any, ...]
    texts: tuple[str, ...]
    runs: tuple[RunFacts, ...] = field(repr=False)
    cells: tuple[Cell, ...] = ()

    @property
    def count(self) -> int:
        """How many runs, or means of runs, its cells have."""
        return max((cell.count + cell.missing for cell in self.cells), default=0) or len(self.runs)


@dataclass(frozen=True, repr=False)
class Table:
    """A table of runs. It prints itself, also in a notebook; `keys` make its rows, `header` are their headings.

    Each column has a cell of each row. `notes` say what marks mean, which test p belongs to, and what is left out.
    """

    title: str
    keys: tuple[str, ...]
    header: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def has_p(self, column: int) -> bool:
        """Whether some cell of a column has been tested."""
        return any(row.cells[column].p is not None for row in self.rows)

    def list_records(self) -> list[dict[str, Any]]:
        """List a record for each row, for `pandas.DataFrame`: its keys, the number of `runs`, and for each column the
        mean, `.deviation` and `.p` where there are."""
        return [self._record(row) for row in self.rows]

    def _record(self, row: Row) -> dict[str, Any]:
        found: dict[str, Any] = {**dict(zip(self.keys, row.values, strict=True)), "runs": row.count}
        for at, (column, cell) in enumerate(zip(self.columns, row.cells, strict=True)):
            found[column.heading] = cell.text if cell.mean is None and cell.text != NONE else _as_whole(cell.mean)
            if any(each.cells[at].deviation is not None for each in self.rows):
                found[f"{column.heading}.deviation"] = cell.deviation
            if self.has_p(at):
                found[f"{column.heading}.p"] = cell.p
        return found

    def __repr__(self) -> str:
        from modgraph.tables.render import render_text

        return render_text([self])

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        from modgraph.tables.render import render_markdown

        return render_markdown([self])

    def _repr_html_(self) -> str:
        from modgraph.tables.html import render_html

        return render_html(self)


def _as_whole(number: float | None) -> float | None:
    """Return a number without digits after the point as a whole one."""
    return int(number) if number is not None and number == number // 1 else number


def as_tuple(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
