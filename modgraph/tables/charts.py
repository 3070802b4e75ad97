"""What the charts of runs read and offer: records of runs by row, metrics, keys and colours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from statistics import fmean
from typing import Any

from modgraph.inspect.charts.runs import SHAPES
from modgraph.inspect.charts.style import choose_line_colours
from modgraph.inspect.page.content import make_unique
from modgraph.tables.curves import read_curves, thin_curves
from modgraph.tables.facts import COSTS, POINT, RUN, STATE, RunFacts
from modgraph.tables.keys import choose_keys, find_differences, list_seeds, split_by, value_of
from modgraph.tables.metrics import rank_metrics
from modgraph.tables.numbers import format_value, is_number, order_of
from modgraph.tables.table import Table

COUNTS = ("steps", "epochs", "best_step")  # facts of a finished run that are no metrics
NAMES = {"active_macs": "active MACs", "macs": "MACs", "seconds": "training time [s]"}  # of costs
FIRST = ("active_macs", "seconds", "parameters")  # keys to compare metrics with, the first that differs at first
DISPLAYED = 12  # rows with curves at first
MOST_COLOURS = 12  # values of a key with a colour each
Record = dict[str, Any]


@dataclass(frozen=True)
class Charts:
    """The charts of runs by the rows of tables. `keys` are settings that runs differ in."""

    runs: Sequence[RunFacts]
    keys: Sequence[str]

    @classmethod
    def from_tables(cls, runs: Sequence[RunFacts], tables: Sequence[Table]) -> Charts:
        """The charts of runs in tables. Their keys make rows and columns, or are seeds."""
        rows = [key for table in tables for key in table.keys if key not in (RUN, STATE)]
        across = [column.across for table in tables for column in table.columns if column.across is not None]
        keys = [*rows, *across] or choose_keys(runs, find_differences(runs))
        seeds = [key for key in sorted(list_seeds(runs)) if len({run.find(key) for run in runs}) > 1]
        return cls(runs, list(dict.fromkeys([*keys, *seeds])))

    @cached_property
    def curves(self) -> list[Record]:
        """The curves of each run."""
        found = [read_curves(run) for run in self.runs]
        thin_curves(found)
        return found

    def list_curves(self) -> list[str]:
        """List the metrics over steps, `split.metric`, the main ones first."""
        return self._rank(
            f"{split}.{name}" for run in self.curves for split, part in run.items() for name in part["values"]
        )

    def list_metrics(self) -> list[str]:
        """List the metrics of finished runs, the main ones first."""
        found = [{**run.latest, **run.metrics} for run in self.runs if run.is_finished]
        names = (name for each in found for name, value in each.items() if value is not None)
        return [name for name in self._rank(names) if name not in COUNTS]

    def _rank(self, names: Iterable[str]) -> list[str]:
        """Order metrics, the main ones first, without those of single modules."""
        known = [name for name in dict.fromkeys(names) if not name.rpartition(".")[2].isdecimal()]
        order = {name: at for at, name in enumerate(rank_metrics(self.runs))}
        return sorted(known, key=lambda name: (order.get(name, len(order)), name))

    def list_numbers(self) -> list[str]:
        """List the keys that metrics can be compared with: costs and settings, the first that differs first."""
        keys = dict.fromkeys((*FIRST, *COSTS, *self.keys, *self.list_metrics()))
        values = {key: {value for value in self._read(key) if is_number(value)} for key in keys}
        return sorted((key for key in keys if values[key]), key=lambda key: key in FIRST and len(values[key]) < 2)

    def _read(self, key: str) -> Iterator[Any]:
        return (describe_run(run, [key]).get(key) for run in self.runs)

    def spans_decade(self, key: str) -> bool:
        """Whether a key's numbers are better compared on a logarithmic scale."""
        known = [value for value in self._read(key) if is_number(value)]
        return min(known, default=0) > 0 and max(known) > 10 * min(known)

    def list_records(self) -> list[Record]:
        """List what the charts read of each run."""
        keys = {*COSTS, *self.keys, *self.list_metrics()}
        return [
            {"run": at, "name": run.name, "curves": curves, "values": describe_run(run, sorted(keys))}
            for at, (run, curves) in enumerate(zip(self.runs, self.curves, strict=True))
        ]

    def describe_rows(self, table: Table) -> Record:
        """Describe the rows of a table: their names, runs, shapes, those `displayed` at first, and their colours."""
        at, series = {id(run): place for place, run in enumerate(self.runs)}, list(list_series(table))
        names = make_unique([name for name, _ in series])
        shapes = [*islice(cycle(SHAPES), len(names))]
        return {
            "rows": names,
            "runs": [[at[id(run)] for run in part] for _, part in series],
            "shapes": shapes,
            "displayed": _choose_series(table, [part for _, part in series]),
            "colours": _assign_colours(names),
        }

    def describe_colours(self, key: str) -> Record:
        """Describe the colours of a key's values: one each, or a scale where they are many numbers."""
        values = {value for value in self._read(key) if value is not None}
        if len(values) > MOST_COLOURS and all(map(is_number, values)):
            return {"kind": "quantitative", "colours": {"scheme": "viridis"}}
        return {"kind": "nominal", "colours": _assign_colours(sorted(values, key=order_of))}

    def choose(self, table: Table) -> dict[str, str]:
        """Choose what is displayed of a table at first: its first metric as `y`, that of validation data as `curve`,
        and `x`."""
        finals, curves = self.list_metrics(), self.list_curves()
        final = next((column.key for column in table.columns if column.key in finals), next(iter(finals), ""))
        measure = final.partition(".")[2]
        wanted = (f"validation.{measure}", f"train.{measure}", "validation.total_loss", "train.total_loss", *curves)
        return {
            "y": final,
            "curve": next((name for name in wanted if name in curves), ""),
            "x": next(iter(self.list_numbers()), ""),
        }


def describe_run(run: RunFacts, keys: Sequence[str]) -> Record:
    """The values of keys of a run; metrics only if it is finished. Numbers are finite, others are as tables print."""
    values = {**run.latest, **run.metrics} if run.is_finished else {}
    found = {
        key: values[key] if key in values else run.costs[key] if key in run.costs else _find_fact(run, key)
        for key in keys
    }
    return {key: _plain(value) for key, value in found.items() if value is not None}


def _find_fact(run: RunFacts, key: str) -> Any:
    return None if key in run.latest or key in run.metrics else value_of(run, key)


def _plain(value: Any) -> str | int | float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if math.isfinite(value) else None
    return format_value(value)


def _assign_colours(values: Sequence[Any]) -> Record:
    return {"domain": list(values), "range": choose_line_colours(len(values))}


def list_series(table: Table) -> Iterator[tuple[str, list[RunFacts]]]:
    """Yield the runs of each curve with a name: those of a row, or of a row and a value of the key across columns."""
    across = [column.across for column in table.columns[:1] if column.across is not None]
    for row in table.rows:
        keys = [RUN] if RUN in table.keys else table.keys  # the name of a run says enough
        named = [each for each in zip(table.keys, table.header, row.texts, strict=True) if each[0] in keys]
        for part in split_by(row.runs, across).values():
            values = [(key, key, format_value(part[0].find(key))) for key in across]
            texts = (text if key in (POINT, RUN) else f"{name}={text}" for key, name, text in (*named, *values))
            yield ", ".join(texts) or "all runs", part


def _choose_series(table: Table, series: Sequence[Sequence[RunFacts]]) -> list[int]:
    """Choose the curves that are displayed at first: those with the best means of the first metric, if it has one."""
    metric = next((column for column in table.columns if column.larger_is_better is not None), None)
    if metric is None or len(series) <= DISPLAYED:
        return list(range(min(DISPLAYED, len(series))))
    found = {}
    for at, runs in enumerate(series):
        values = [value for run in runs if isinstance(value := run.find(metric.key), int | float)]
        found[at] = fmean(values) * (-1 if metric.larger_is_better else 1) if values else math.inf
    return sorted(sorted(found, key=lambda at: found[at])[:DISPLAYED])
