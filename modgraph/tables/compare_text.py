"""Renders a comparison of two groups of runs as text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from modgraph.store.records import json_text
from modgraph.tables import render
from modgraph.tables.compare import Group, GroupsCompared, Quantity, Sample, describe_states
from modgraph.tables.marks import WITHOUT
from modgraph.tables.metrics import is_main
from modgraph.tables.numbers import choose_digits, format_deviation, format_number, format_value
from modgraph.tables.significance import LEVEL, can_test, is_testable
from modgraph.tables.table import Cell, Column, Row, Table

FORMAT = 1
SIDES = ("before", "after")
OF_SAMPLE = ("", ".deviation", ".count")
HEADER = ("subject", "key", *(f"{side}{fact}" for side in SIDES for fact in OF_SAMPLE), "difference", "p")  # of CSV
MOST_LETTERS = 28  # of a name that heads a column


def render_comparison(found: GroupsCompared, kind: str = "text") -> str:
    """Render a comparison as `text`, `markdown`, `csv` or `json`."""
    match kind:
        case "json":
            return json_text(as_json(found), indent=2)
        case "csv":
            return _render_csv(found)
        case _:
            return render.FORMATS[kind](make_tables(found))


def make_tables(found: GroupsCompared) -> list[Table]:
    """Make the tables: settings and costs that differ, metrics, routing that differs. Parts of metrics are left to
    JSON."""
    names = _name_columns(found.groups)
    settings = [_make_row(each.key, _list(each.before), _list(each.after)) for each in found.settings]
    main = [each for each in found.metrics if is_main(each.key)] or list(found.metrics)
    costs, routing = ([each for each in of if each.before != each.after] for of in (found.costs, found.routing))
    made = [
        _make_table("setting", names, settings),
        _make_table("cost", (*names, "difference"), map(_fill, costs)),
        _make_table("metric", (*names, "difference", ""), map(_fill, main), _list_notes(found)),
        _make_table("routing", (*names, "difference"), map(_fill, routing)),
    ]
    first, *others = [table for table in made if table.rows or table.notes]
    title = f"{_describe(found.groups[0], names[0])} → {_describe(found.groups[1], names[1])}"
    return [replace(first, title=title), *others]


def _name_columns(groups: Sequence[Group]) -> tuple[str, str]:
    """Return what heads the columns of both groups: their names, or A and B for long or equal ones."""
    first, second = (group.name for group in groups)
    is_short = max(len(first), len(second)) <= MOST_LETTERS and first != second
    return (first, second) if is_short else ("A", "B")


def _describe(group: Group, heading: str) -> str:
    count = len(group.counted)
    name = group.name if heading == group.name else f"{heading}: {group.name}"
    return f"{name} ({count} run{'s' * (count != 1)})"


def _list(values: Sequence[Any]) -> str:
    return ", ".join(map(format_value, values))


def _make_table(key: str, names: Sequence[str], rows: Iterable[Row], notes: Sequence[str] = ()) -> Table:
    """Make a table of as many columns as it has names."""
    columns = tuple(Column(name, name) for name in names)
    cut = tuple(replace(row, cells=row.cells[: len(columns)]) for row in rows)
    return Table("", (key,), (key,), columns, cut, tuple(notes))


def _make_row(key: str, *cells: str | Cell) -> Row:
    made = tuple(cell if isinstance(cell, Cell) else Cell(text=cell) for cell in cells)
    return Row((key,), (key,), (), made)


def _fill(each: Quantity) -> Row:
    """Make the row of a quantity: both means, their difference with p, and the verdict on the second."""
    digits = choose_digits([*each.before.values, *each.after.values])
    old, change = each.before.mean, each.difference
    sign = "+" if change is not None and change > 0 else ""
    share = f" ({change / old:+.1%})" if digits is None and old and change else ""
    verdict = {"after": "better", "before": "worse", None: ""}[each.better]
    is_close = each.p is not None and not each.is_significant and verdict
    return _make_row(
        each.key,
        *(_format(sample, digits) for sample in (each.before, each.after)),
        Cell(text=f"{sign}{format_number(change, digits)}{share}", p=each.p),
        f"≈ {verdict}" if is_close else verdict,
    )


def _format(sample: Sample, digits: int | None) -> str:
    if sample.mean is None or not sample.deviation:
        return format_number(sample.mean, digits)
    return format_deviation(sample.mean, sample.deviation, 1 if digits is None else digits)


def _list_notes(found: GroupsCompared) -> list[str]:
    """Write what ±, p and ≈ mean, which test it is, and which runs do not count."""
    both = (*found.metrics, *found.routing)
    many = any(sample.deviation for each in both for sample in (each.before, each.after))
    notes = [] if found.settings else ["the settings are the same"]
    notes += ["±: standard deviation over runs (n − 1)"] if many else []
    if found.test is not None:
        how = f" of runs with equal {' and '.join(found.paired_by)}" if found.paired_by else ""
        notes.append(f"p: {found.test}{how}, two-sided; ≈: not significant (p ≥ {LEVEL})")
    elif not can_test() and any(is_testable(each.before.values) and is_testable(each.after.values) for each in both):
        notes.append(WITHOUT)
    elif min(len(group.counted) for group in found.groups) < 2:
        notes.append("no test: it needs two runs of each")
    parts = [each.key for each in found.metrics if not is_main(each.key)]
    notes += [f"further metrics: {len(parts)} (--format json)"] if parts and len(parts) < len(found.metrics) else []
    for group in found.groups:
        if not all(run.is_finished for run in group.counted):
            notes.append(f"{group.name} is unfinished: metrics are those so far")
        notes += [f"{group.name}: left out are {describe_states(group)}"] if group.left_out else []
    return notes


def _render_csv(found: GroupsCompared) -> str:
    """Render a line for each setting, cost and metric, with unrounded numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for each in found.settings:
        writer.writerow(["setting", each.key, _list(each.before), "", "", _list(each.after), "", "", "", ""])
    for subject, quantities in (("cost", found.costs), ("metric", found.metrics), ("routing", found.routing)):
        for quantity in quantities:
            samples = (quantity.before, quantity.after)
            numbers = [fact for each in samples for fact in (each.mean, each.deviation, len(each.values))]
            writer.writerow([subject, quantity.key, *numbers, quantity.difference, quantity.p])
    return text.getvalue().rstrip("\n")


def as_json(found: GroupsCompared) -> dict[str, Any]:
    """Return a comparison as plain values; docs/diff.md describes the keys."""
    groups = {
        side: {
            "name": group.name,
            "runs": [str(run.path) for run in group.counted],
            "left_out": dict(group.left_out),
        }
        for side, group in zip(SIDES, found.groups, strict=True)
    }
    return {
        "format": FORMAT,
        **groups,
        "settings": [{"key": each.key, "before": [*each.before], "after": [*each.after]} for each in found.settings],
        "costs": [_quantity(each, "cost") for each in found.costs],
        "metrics": [_quantity(each, "metric") for each in found.metrics],
        "routing": [_quantity(each, "metric") for each in found.routing],
        "test": found.test,
        "paired_by": [*found.paired_by],
    }


def _quantity(each: Quantity, name: str) -> dict[str, Any]:
    samples = {
        side: {"mean": sample.mean, "deviation": sample.deviation, "count": len(sample.values)}
        for side, sample in zip(SIDES, (each.before, each.after), strict=True)
    }
    return {name: each.key, **samples, "difference": each.difference, "better": each.better, "p": each.p}
