"""Writes many runs as one HTML file: tables, curves, metrics against costs, and the list of runs.

The file loads nothing. Its script is in `inspect/page`: `runs.js` and `plot.js`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from modgraph.diagnostics import list_names
from modgraph.inspect.page.document import join_scripts, read_style_of_drawing, text_of, write_policy
from modgraph.inspect.quote import escape_html, script_json
from modgraph.tables.curves import read_curves, thin_curves
from modgraph.tables.facts import COSTS, POINT, RUN, STATE, RunFacts
from modgraph.tables.keys import choose_keys, find_differences, list_seeds, shorten_keys, split_by, value_of
from modgraph.tables.metrics import rank_metrics
from modgraph.tables.notes import note_reasons
from modgraph.tables.numbers import format_p, format_value
from modgraph.tables.table import Cell, Column, Table
from modgraph.version import VERSION

SCRIPTS = ("dom.js", "theme.js", "plot.js", "runs.js")
COUNTS = ("steps", "epochs", "best_step")  # facts of a finished run that are no metrics
LISTED = ("active_macs", "parameters", "seconds", "steps")
COUNTED = ("macs", "active_macs", "parameters", "trainable")
NAMES = {"macs": "MACs", "active_macs": "active MACs", "seconds": "training time"}  # of costs
HEADINGS = NAMES | {"seconds": "training time [s]"}
HINT = re.compile(r" \(--[^)]*\)$")  # an option of the command, in a note
CURVES = 12  # displayed at first
Record = dict[str, Any]


def write_page(runs: Sequence[RunFacts], tables: Sequence[Table], title: str = "") -> str:
    """Write the page of some runs, with tables of them. The rows of a table have curves. By default, the title names
    the models."""
    models = sorted({run.model for run in runs if run.model})
    curves = [read_curves(run) for run in runs]
    thin_curves(curves)
    finals, known = _list_finals(runs), _list_curves(runs, curves)
    columns = _list_columns(runs, tables, finals)
    names = shorten_keys(columns)
    data = {
        "runs": [_describe(run, found, columns, finals) for run, found in zip(runs, curves, strict=True)],
        "columns": [{"title": NAMES.get(key, names[key]), **_kind_of(key, runs)} for key in columns],
        "layouts": [_table_as_json(table, runs) | _choose_first(table, known, finals) for table in tables],
        "curves": known,
        "finals": finals,
    }
    script, style = join_scripts(SCRIPTS), read_style_of_drawing() + text_of("runs.css")
    return text_of("runs.html").format(
        policy=escape_html(write_policy(style, script)),
        version=VERSION,
        title=escape_html(title or (f"Runs of {list_names(models)}" if models else "Runs")),
        style=style,
        data=script_json(data),
        script=script,
    )


# ------------------------------------------------------------ tables


def _table_as_json(table: Table, runs: Sequence[RunFacts]) -> Record:
    at = {id(run): place for place, run in enumerate(runs)}
    headings = [HEADINGS.get(column.heading, column.heading) + column.arrow for column in table.columns]
    series = list(_list_series(table))
    reasons = note_reasons(runs)  # which the list of runs has
    return {
        "title": table.title or "Results",
        "keys": len(table.header),
        "header": [*table.header, *headings],
        "above": _name_columns(table),
        "numeric": [_is_numeric(row.values[n] for row in table.rows) for n in range(len(table.keys))]
        + [any(row.cells[n].mean is not None for row in table.rows) for n in range(len(table.columns))],
        "rows": [
            [{"text": text} for text in row.texts]
            + [_cell_as_json(column, cell) for column, cell in zip(table.columns, row.cells, strict=True)]
            for row in table.rows
        ],
        "series": [{"name": name, "runs": [at[id(run)] for run in part]} for name, part in series],
        "displayed": _choose_series(table, [part for _, part in series]),
        "notes": [*_note_counts(table), *(HINT.sub("", note) for note in table.notes if note not in reasons)],
    }


def _cell_as_json(column: Column, cell: Cell) -> Record:
    """A cell; a cost that all runs of the row share has its number."""
    mark = "*" if cell.is_best else "≈" if cell.is_close else ""
    found = {"text": cell.text, "mark": mark, "p": "" if cell.p is None else f"p {format_p(cell.p)}"}
    is_exact = column.key in COUNTED and cell.mean is not None and not cell.deviation and not cell.missing
    return found | ({"exact": cell.mean} if is_exact else {})


def _note_counts(table: Table) -> list[str]:
    """Write how many runs the cells have, where some have several."""
    counts = sorted({cell.count for row in table.rows for cell in row.cells if cell.count})
    several = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{max(counts, default=0)}"
    return [f"n = {several} runs"] if counts and counts[-1] > 1 else []


def _name_columns(table: Table) -> str:
    """What stands above the columns of a table whose columns are the values of a key."""
    across = {column.across for column in table.columns if column.across is not None}
    keys = {column.key for column in table.columns}
    measure = f"{min(keys)} by " if len(keys) == 1 else ""
    return f"{measure}{min(across)}" if across else ""


def _list_series(table: Table) -> Iterator[tuple[str, list[RunFacts]]]:
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
    if metric is None or len(series) <= CURVES:
        return list(range(min(CURVES, len(series))))
    found = {}
    for at, runs in enumerate(series):
        values = [value for run in runs if isinstance(value := run.find(metric.key), int | float)]
        found[at] = fmean(values) * (-1 if metric.larger_is_better else 1) if values else math.inf
    return sorted(sorted(found, key=lambda at: found[at])[:CURVES])


# ------------------------------------------------------------ runs


def _list_columns(runs: Sequence[RunFacts], tables: Sequence[Table], finals: Sequence[str]) -> list[str]:
    """List the keys that the list of runs has: those that make rows, seeds, metrics of the tables, and costs."""
    rows = [key for table in tables for key in table.keys if key not in (RUN, STATE)]
    across = [column.across for table in tables for column in table.columns if column.across is not None]
    keys = [*rows, *across] or choose_keys(runs, find_differences(runs))
    seeds = [key for key in sorted(list_seeds(runs)) if len({run.find(key) for run in runs}) > 1]
    metrics = [column.key for table in tables for column in table.columns if column.key not in COSTS]
    metrics = [key for key in metrics if any(run.has(key) for run in runs)] or list(finals[:3])
    costs = [key for key in LISTED if any(run.find(key) is not None for run in runs)]
    return list(dict.fromkeys([*keys, *seeds, *metrics, *costs]))


def _kind_of(key: str, runs: Sequence[RunFacts]) -> Record:
    is_metric = any(key in run.metrics or key in run.latest for run in runs)
    kind = "seconds" if key == "seconds" else "cost" if key in COUNTED else "metric" if is_metric else ""
    return {"kind": kind, "numeric": _is_numeric(run.find(key) for run in runs)}


def _is_numeric(values: Iterator[Any] | Any) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def _describe(run: RunFacts, curves: Record, columns: Sequence[str], finals: Sequence[str]) -> Record:
    values = {**run.latest, **run.metrics} if run.is_finished else {}
    return {
        "name": run.name,
        "state": run.state,
        "reason": run.reason,
        "cells": [_plain(value_of(run, key)) for key in columns],
        "metrics": {name: _plain(values[name]) for name in finals if name in values},
        "costs": {name: _plain(run.costs.get(name)) for name in COSTS},
        "curves": curves,
    }


def _plain(value: Any) -> str | int | float | None:
    """Return a number, or a text as tables print it; None for what has no value or is not finite."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value if value is not None and math.isfinite(value) else None
    return format_value(value)


def _list_finals(runs: Sequence[RunFacts]) -> list[str]:
    """List the metrics of finished runs, the main ones first."""
    found = [{**run.latest, **run.metrics} for run in runs if run.is_finished]
    names = dict.fromkeys(name for each in found for name, value in each.items() if value is not None)
    return [name for name in _rank(runs, names) if name not in COUNTS]


def _list_curves(runs: Sequence[RunFacts], curves: Sequence[Record]) -> list[str]:
    names = {f"{split}.{name}": None for run in curves for split, part in run.items() for name in part["values"]}
    return _rank(runs, names)


def _rank(runs: Sequence[RunFacts], names: Mapping[str, Any]) -> list[str]:
    """Order metrics, the main ones first, without those of single modules."""
    known = [name for name in names if not name.rpartition(".")[2].isdecimal()]
    order = {name: at for at, name in enumerate(rank_metrics(runs))}
    return sorted(known, key=lambda name: (order.get(name, len(order)), name))


def _choose_first(table: Table, curves: Sequence[str], finals: Sequence[str]) -> Record:
    """Choose the metrics that are displayed at first: the first of the table, and its curve on validation data."""
    final = next((column.key for column in table.columns if column.key in finals), "")
    measure = final.partition(".")[2]
    wanted = (f"validation.{measure}", f"train.{measure}", "validation.total_loss", "train.total_loss")
    return {"final": final, "curve": next((name for name in wanted if name in curves), "")}
