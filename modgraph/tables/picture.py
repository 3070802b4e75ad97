"""Draws the charts of runs as a file: for each table the curves of its rows, and its main metric against a cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.extras import require
from modgraph.inspect.charts.picture import arrange, render, stack
from modgraph.inspect.charts.runs import SCALES, curves_of_rows, points_of_runs
from modgraph.inspect.charts.style import Spec
from modgraph.inspect.charts.template import fill
from modgraph.tables.charts import NAMES, Charts
from modgraph.tables.errors import NoCharts
from modgraph.tables.facts import RunFacts
from modgraph.tables.table import Table

WIDTH = 520  # pixels of a chart
LEGEND = {"title": None, "orient": "bottom", "columns": 3, "symbolOpacity": 1, "symbolType": "square"}


def draw_charts(runs: Sequence[RunFacts], tables: Sequence[Table], suffix: str) -> bytes:
    """Draw what a page of the runs has at first. Raises `ModgraphError`, also where no run has metrics."""
    require("pictures", "a picture", "write a page: --html runs.html")
    charts = Charts.from_tables(runs, tables)
    records = charts.list_records()
    rows = [row for table in tables if table.rows for row in _draw_table(charts, table, records)]
    if not rows:
        raise ModgraphError([NoCharts(count=len(runs))])
    return render(stack(rows), suffix)


def _draw_table(charts: Charts, table: Table, records: Sequence[dict[str, Any]]) -> list[Spec]:
    rows, first = charts.describe_rows(table), charts.choose(table)
    series = zip(rows["rows"], rows["runs"], strict=True)
    values = [{"row": name, **records[run]} for name, runs in series for run in runs]
    split, _, metric = first["curve"].partition(".")
    axes = {"split": split, "metric": metric, "over": "step", "colour": "", "x": first["x"], "y": first["y"]}
    log_x = charts.spans_decade(first["x"])
    scales = {
        "log_x": log_x,
        "log_y": False,
        "x_scale": SCALES["log" if log_x else "linear"],
        "y_scale": SCALES["linear"],
    }
    names = {"x_name": NAMES.get(first["x"], first["x"]), "y_name": first["y"]}
    style = {"kind": "nominal", "legend": LEGEND, "width": WIDTH}
    choices = rows | axes | scales | names | style | {"displayed": [rows["rows"][at] for at in rows["displayed"]]}
    titles = {"x_title": names["x_name"] + " (log scale)" * log_x, "y_title": first["y"]}
    blanks = [(curves_of_rows(), {"x_title": "step", "y_title": first["curve"]})] if first["curve"] else []
    blanks += [(points_of_runs(), titles)] if first["x"] and first["y"] else []
    specs = [{"data": {"values": values}, **fill(spec, choices | texts)} for spec, texts in blanks]
    return arrange([("", WIDTH, spec) for spec in specs], table.title) if specs else []
