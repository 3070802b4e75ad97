"""Fills the cells of a column: which runs of a row count, their mean and deviation, and how these print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from modgraph.tables.columns import RUNS
from modgraph.tables.facts import RunFacts
from modgraph.tables.keys import list_seeds, split_by
from modgraph.tables.layout import TableLayout
from modgraph.tables.metrics import is_larger_better
from modgraph.tables.numbers import NONE, choose_digits, format_deviation, format_number, format_value, is_number
from modgraph.tables.table import Cell, Column, as_tuple

Sample = Sequence[RunFacts]  # runs whose mean is one value


@dataclass(frozen=True)
class Filler:
    """Fills columns by a layout."""

    layout: TableLayout

    def fill(self, column: Column, rows: Sequence[Sequence[RunFacts]]) -> list[Cell]:
        """Fill a column: a cell for the runs of each row."""
        cells = [self._compute([run for run in runs if column.takes(run)], column) for runs in rows]
        factor = 100 if column.is_percent else 1
        digits = self._choose_digits(column, [factor * value for cell in cells for value in cell.values])
        return [replace(cell, text=cell.text or self._format(cell, column, factor, digits)) for cell in cells]

    def choose(self, runs: Sequence[RunFacts]) -> list[RunFacts]:
        """Return the runs of a row that count: all, or the best by the layout's `choose`."""
        metric = self.layout.choose
        if metric is None:
            return list(runs)
        sign = -1 if is_larger_better(metric) else 1
        known = [run for run in runs if is_number(run.find(metric))]
        parts = split_by(known, as_tuple(self.layout.choose_each)).values()
        return [min(part, key=lambda run: sign * float(run.find(metric))) for part in parts]

    def _split(self, runs: Sequence[RunFacts]) -> tuple[list[Sample], int]:
        """Return the samples whose means are the values of a cell, and how many are left out: those that lack a value
        of the keys that are averaged over."""
        over = as_tuple(self.layout.over)
        if not over:
            return [[run] for run in runs], 0
        seeds = sorted(key for key in list_seeds(runs) if key not in over and any(run.has(key) for run in runs))
        whole = len(split_by(runs, over))
        samples = list(split_by(runs, seeds).values())
        found: list[Sample] = [sample for sample in samples if len(split_by(sample, over)) == whole]
        return found, len(samples) - len(found)

    def _compute(self, runs: Sequence[RunFacts], column: Column) -> Cell:
        counted = self.choose(runs)
        if column.key == RUNS:
            return Cell(values=(float(len(counted)),), mean=len(counted))
        found = [run.find(column.key) for run in counted]
        if any(isinstance(value, str | bool | list) and value != "" for value in found):
            texts = dict.fromkeys(map(format_value, found))
            return Cell(text=", ".join(texts))
        samples, missing = self._split(counted)
        numbers = [[run.find(column.key) for run in sample] for sample in samples]
        values = tuple(fmean(each) for each in numbers if all(map(is_number, each)))
        missing += len(numbers) - len(values)
        if not values:
            return Cell(text=NONE, missing=missing)
        deviation = stdev(values) if len(values) > 1 else None
        return Cell(values=values, mean=fmean(values), deviation=deviation, missing=missing)

    def _choose_digits(self, column: Column, numbers: Sequence[float]) -> int | None:
        digits, given = choose_digits(numbers), self.layout.digits
        if isinstance(given, Mapping) and column.heading in given:
            return given[column.heading]
        if column.is_percent or (digits is None and column.larger_is_better is not None):
            digits = 1
        if digits is None or given is None:
            return digits
        return given if isinstance(given, int) else digits

    def _format(self, cell: Cell, column: Column, factor: int, digits: int | None) -> str:
        if cell.mean is None:
            return NONE
        is_constant = cell.deviation == 0 and column.larger_is_better is None
        if cell.deviation is None or is_constant:
            text = format_number(factor * cell.mean, digits)
        else:
            text = format_deviation(factor * cell.mean, factor * cell.deviation, 1 if digits is None else digits)
        return f"{text} ({cell.count} of {cell.count + cell.missing})" if cell.missing else text
