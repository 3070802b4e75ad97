"""Shares of modules as a picture: by class and group (Li et al., ICLR 2023, figure 3b)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from modgraph.diagnostics import ModgraphError
from modgraph.trace.errors import NoGroups, TooTall
from modgraph.trace.groups import groupings_of, use_by_groups
from modgraph.trace.routes import RouteTrace
from modgraph.trace.sheet import Sheet, file_of, shortened
from modgraph.trace.trace import Trace

MOST_ROWS = 1000
DARK = 0.6  # of the scale, from where on words are white

# in inches
TITLE, HEAD, ROW, COLUMN, NAMES, MARGIN = 0.35, 0.3, 0.22, 0.5, 1.2, 0.3

Tables = dict[str, dict[str, list[float]]]  # shares of the modules by grouping and group


def groups_picture(trace: Trace, suffix: str) -> bytes:
    """A table for each route and grouping: a row for each group, a column for each module. Raises `ModgraphError`."""
    groupings = groupings_of(trace)
    if not groupings:
        raise ModgraphError([NoGroups(split=trace.split)])
    tables = [use_by_groups(trace, route) for route in trace.routes]
    rows = sum(max(len(table) for table in each.values()) for each in tables)
    if rows > MOST_ROWS:
        raise ModgraphError([TooTall(rows=rows, most=MOST_ROWS)])
    return file_of(lambda: _drawn_tables(trace, tables), suffix)


def _drawn_tables(trace: Trace, tables: list[Tables]) -> Sheet:
    widest = max(_width(route) for route in trace.routes)
    sheet = Sheet.blank(MARGIN + widest * len(tables[0]), MARGIN + sum(map(_height, tables)))
    top = 0.1
    for route, found in zip(trace.routes, tables, strict=True):
        sheet.title(top + 0.2, f"{route.name}: {route.pool}, {trace.split}")
        for column, (grouping, shares) in enumerate(found.items()):
            _draw_table(sheet, MARGIN / 2 + column * _width(route), top + TITLE, grouping, shares)
        top += _height(found)
    return sheet


def _width(route: RouteTrace) -> float:
    return NAMES + route.modules * COLUMN + MARGIN


def _height(tables: Tables) -> float:
    return TITLE + HEAD + ROW * max(map(len, tables.values())) + MARGIN


def _draw_table(sheet: Sheet, left: float, top: float, grouping: str, shares: Mapping[str, list[float]]) -> None:
    """Names of modules above, of groups on the left, and shares in percent on their colours."""
    table = np.array(list(shares.values()))
    largest = max(float(table.max()), 1e-9)
    corner, first = left + NAMES, top + HEAD
    axes = sheet.axes(corner, first, table.shape[1] * COLUMN, table.shape[0] * ROW)
    axes.imshow(table, cmap="Blues", vmin=0, vmax=largest, aspect="auto")
    axes.set_axis_off()
    sheet.write(corner - 0.08, top + HEAD / 2, grouping, ha="right", va="center", style="italic")
    for module in range(table.shape[1]):
        sheet.write(corner + (module + 0.5) * COLUMN, top + HEAD / 2, str(module), ha="center", va="center")
    for row, (group, values) in enumerate(shares.items()):
        middle = first + (row + 0.5) * ROW
        sheet.write(corner - 0.08, middle, shortened(group, 16), ha="right", va="center")
        for module, share in enumerate(values):
            colour = "white" if share > DARK * largest else "black"
            place = corner + (module + 0.5) * COLUMN
            sheet.write(place, middle, f"{100 * share:.0f}", color=colour, ha="center", va="center")
