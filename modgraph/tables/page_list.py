"""Writes the list of runs of a page: a row for each run, whose cells have the numbers by which the page sorts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from modgraph.inspect.quote import escape_html
from modgraph.tables.charts import NAMES, Charts, describe_run
from modgraph.tables.facts import COSTS, RunFacts
from modgraph.tables.keys import shorten_keys
from modgraph.tables.numbers import choose_digits, format_number, is_number
from modgraph.tables.table import Table

LISTED = ("active_macs", "parameters", "seconds", "steps")
RIGHT = ' class="numeric"'


def write_list(charts: Charts, tables: Sequence[Table]) -> str:
    """Write the runs with the keys that tell them apart, metrics of the tables, and costs."""
    keys = _list_columns(charts, tables)
    described = [describe_run(run, keys) for run in charts.runs]
    columns = [[each.get(key) for each in described] for key in keys]
    styles = [RIGHT if all(value is None or is_number(value) for value in column) else "" for column in columns]
    texts = [
        [_write_cell(*each, style) for each in zip(column, _format(column), strict=True)]
        for column, style in zip(columns, styles, strict=True)
    ]
    names = shorten_keys(keys)
    heads = [
        ("run", ""),
        ("state", ""),
        *((NAMES.get(key, names[key]), style) for key, style in zip(keys, styles, strict=True)),
    ]
    head = "".join(
        f'<th scope="col"{style}><button type="button">{escape_html(text)}</button></th>' for text, style in heads
    )
    rows = (_write_row(at, run, "".join(column[at] for column in texts)) for at, run in enumerate(charts.runs))
    return f'<table class="runs"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _list_columns(charts: Charts, tables: Sequence[Table]) -> list[str]:
    metrics = [column.key for table in tables for column in table.columns if column.key not in COSTS]
    metrics = [key for key in metrics if any(run.has(key) for run in charts.runs)] or charts.list_metrics()[:3]
    costs = [key for key in LISTED if any(run.find(key) is not None for run in charts.runs)]
    return list(dict.fromkeys([*charts.keys, *metrics, *costs]))


def _write_row(at: int, run: RunFacts, cells: str) -> str:
    name = re.sub("([,/])", r"\1<wbr>", escape_html(run.name))
    reason = f'<span class="reason">{escape_html(run.reason)}</span>' if run.reason else ""
    state = f'<td><span class="state-{run.state}">{run.state}</span></td>'
    return f'<tr tabindex="-1" data-run="{at}"><td class="name">{name}{reason}</td>{state}{cells}</tr>'


def _write_cell(value: Any, text: str, style: str) -> str:
    known = "" if value is None else f' data-value="{escape_html(str(value))}"'
    return f"<td{style}{known}>{escape_html(text)}</td>"


def _format(column: Sequence[Any]) -> list[str]:
    """Format the numbers of a column with equally many digits, whole ones with none."""
    numbers = [value for value in column if is_number(value)]
    digits = choose_digits(numbers) if numbers else None
    return [
        "" if value is None else format_number(value, digits) if is_number(value) else str(value) for value in column
    ]
