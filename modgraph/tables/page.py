"""Writes many runs as one HTML file: tables, curves, metrics against other numbers, and the list of runs.

The file loads nothing. Charts are described in `inspect/charts/runs.py`; `runs.js` fills in what its controls choose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from functools import partial
from typing import Any

from modgraph.diagnostics import list_names
from modgraph.inspect.charts import CONFIG
from modgraph.inspect.charts.runs import SCALES, SHAPES, curves_of_rows, points_of_runs
from modgraph.inspect.page.document import join_scripts, read_style_of_drawing, text_of, write_policy
from modgraph.inspect.page.libraries import Library
from modgraph.inspect.quote import escape_html, script_json
from modgraph.tables.charts import NAMES, Charts
from modgraph.tables.facts import RunFacts
from modgraph.tables.html import write_table
from modgraph.tables.keys import shorten_keys
from modgraph.tables.notes import note_reasons
from modgraph.tables.page_list import write_list
from modgraph.tables.table import Table
from modgraph.version import VERSION

SCRIPTS = ("dom.js", "packed.js", "theme.js", "chart.js", "run_list.js", "runs.js")
STYLES = ("tip.css", "runs.css")
HINT = re.compile(r" \(--[^)]*\)$")  # an option of the command, in a note
NONE = "<p class=muted>There are no metrics of these runs yet.</p>"


def write_page(runs: Sequence[RunFacts], tables: Sequence[Table], title: str = "") -> str:
    """Write the page of some runs, with tables of them. The rows of a table have curves. By default, the title names
    the models."""
    charts, models = Charts.from_tables(runs, tables), sorted({run.model for run in runs if run.model})
    filled = [table for table in tables if table.rows]
    has_charts = bool(filled and (charts.list_metrics() or charts.list_curves()))
    libraries = [Library.VEGA] if has_charts else []
    script, style = join_scripts(SCRIPTS), read_style_of_drawing() + "".join(map(text_of, STYLES))
    states = ", ".join(f"{count} {state}" for state, count in Counter(run.state for run in runs).items())
    return text_of("runs.html").format(
        policy=escape_html(write_policy(style, script, *(each.script() for each in libraries))),
        version=VERSION,
        title=escape_html(title or (f"Runs of {list_names(models)}" if models else "Runs")),
        counts=f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}: {states}",
        style=style,
        tables="".join(map(partial(_write_section, runs), tables)),
        charts=_write_controls(charts, filled) if has_charts else NONE,
        list=write_list(charts, tables),
        data=script_json(_describe_charts(charts, filled) if has_charts else {}),
        libraries="".join(each.embed() for each in libraries),
        script=script,
    )


# ------------------------------------------------------------ tables


def _write_section(runs: Sequence[RunFacts], table: Table) -> str:
    """Write a table with its title and notes, but the reasons, which the list of runs has."""
    reasons = note_reasons(runs)
    notes = [HINT.sub("", note) for note in table.notes if note not in reasons]
    heading = ": ".join(filter(None, (table.title or "Results", _name_columns(table))))
    content = f'<div class="scroll">{write_table(table)}</div>' if table.rows else ""
    items = "".join(f"<li>{escape_html(note)}</li>" for note in notes)
    return f'<h2>{escape_html(heading)}</h2>{content}<ul class="note">{items}</ul>'


def _name_columns(table: Table) -> str:
    """Name what the columns of a table are whose columns are the values of a key."""
    across = {column.across for column in table.columns if column.across is not None}
    keys = {column.key for column in table.columns}
    measure = f"{min(keys)} by " if len(keys) == 1 else ""
    return f"{measure}{min(across)}" if across else ""


# ------------------------------------------------------------ charts


def _describe_charts(charts: Charts, tables: Sequence[Table]) -> dict[str, Any]:
    return {
        "records": charts.list_records(),
        "tables": [charts.describe_rows(table) for table in tables],
        "colours": {key: charts.describe_colours(key) for key in charts.keys},
        "curves": curves_of_rows(interactive=True),
        "points": points_of_runs(interactive=True),
        "scales": SCALES,
        "config": CONFIG,
    }


def _write_controls(charts: Charts, tables: Sequence[Table]) -> str:
    """Write the controls of the charts, with a legend of rows for each table."""
    first, numbers = charts.choose(tables[0]), charts.list_numbers()
    names = {key: NAMES.get(key, name) for key, name in shorten_keys(dict.fromkeys([*numbers, *charts.keys])).items()}
    curves, metrics = charts.list_curves(), charts.list_metrics()
    times = {"step": "step", "seconds": NAMES["seconds"]}
    decades = {key for key in numbers if charts.spans_decade(key)}
    titles = {str(at): table.title or "Results" for at, table in enumerate(tables)}
    return text_of("run_charts.html").format(
        table=f"<label>rows of {_write_select('table', titles, '0')}</label>" if len(tables) > 1 else "",
        metric=_write_select("curve", dict(zip(curves, curves, strict=True)), first["curve"]),
        over=_write_select("over", times, "step"),
        y=_write_select("y", dict(zip(metrics, metrics, strict=True)), first["y"]),
        x=_write_select("x", {key: names[key] for key in numbers}, first["x"], decades),
        log_x=" checked" if first["x"] in decades else "",
        colour=_write_select("colour", {"": "row", **{key: names[key] for key in charts.keys}}, ""),
        legends="".join(_write_legend(charts.describe_rows(table), at) for at, table in enumerate(tables)),
    )


def _write_select(name: str, options: dict[str, str], initial: str, decades: Set[str] = frozenset()) -> str:
    written = (
        f'<option value="{escape_html(key)}"{" selected" if key == initial else ""}'
        f"{' data-log' if key in decades else ''}>{escape_html(text)}</option>"
        for key, text in options.items()
    )
    return f'<select name="{name}">{"".join(written)}</select>'


def _write_legend(rows: dict[str, Any], at: int) -> str:
    """Write a box to tick for each row, with its mark."""
    boxes = (
        f'<label><input type="checkbox" name="row" value="{number}"{" checked" * (number in rows["displayed"])}>'
        f"<b>{SHAPES[shape]}</b><span>{escape_html(name)}</span></label>"
        for number, (name, shape) in enumerate(zip(rows["rows"], rows["shapes"], strict=True))
    )
    return f'<fieldset class="legend"{" disabled" * bool(at)} aria-label="rows">{"".join(boxes)}</fieldset>'
