"""Paths from route to route as a picture: a column for each route, a disc for each module, lines as wide as often."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.trace.errors import NoPaths
from modgraph.trace.paths import choices_of, successive
from modgraph.trace.routes import RouteTrace
from modgraph.trace.sheet import WORDS, Sheet, file_of, shortened
from modgraph.trace.trace import Trace

WIDEST, LARGEST = 14.0, 0.36  # points of a line that all take; inches across a disc that is always chosen

# in inches
COLUMN, ROW, TITLE, HEAD, MARGIN = 1.5, 0.45, 0.35, 0.35, 0.4


def paths_picture(trace: Trace, suffix: str) -> bytes:
    """The content of a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
    groups = successive(trace)
    if not groups:
        raise ModgraphError([NoPaths()])
    return file_of(lambda: _drawn(trace, groups), suffix)


def _drawn(trace: Trace, groups: list[list[RouteTrace]]) -> Sheet:
    widest = max(len(routes) for routes in groups)
    sheet = Sheet.blank(2 * MARGIN + widest * COLUMN, MARGIN + sum(map(_height, groups)))
    top = 0.1
    for routes in groups:
        sheet.title(top + 0.2, f"paths of {routes[0].short_pool} by route, {trace.split}")
        _draw_group(sheet, top + TITLE, routes)
        top += _height(routes)
    return sheet


def _height(routes: list[RouteTrace]) -> float:
    return TITLE + HEAD + ROW * max(route.modules for route in routes) + MARGIN


def _draw_group(sheet: Sheet, top: float, routes: list[RouteTrace]) -> None:
    """One drawing in inches, its first module on top."""
    width, rows = len(routes) * COLUMN, max(route.modules for route in routes)
    axes = sheet.axes(MARGIN, top + HEAD, width, rows * ROW)
    axes.set_xlim(0, width)
    axes.set_ylim(rows * ROW, 0)
    axes.set_axis_off()
    chosen = choices_of(routes)
    for column, (before, behind) in enumerate(pairwise(chosen)):
        _draw_lines(axes, column, _together(before, behind))
    for column, (route, own) in enumerate(zip(routes, chosen, strict=True)):
        name = shortened(route.name, int(COLUMN / 0.09))
        sheet.write(MARGIN + _across(column), top + HEAD / 2, name, ha="center", va="center")
        _draw_discs(axes, column, own.mean(0) if len(own) else np.zeros(route.modules))


def _together(before: NDArray[np.bool_], behind: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The share of decisions that chose each module at one route and each at the next."""
    counts: NDArray[np.float64] = before.T.astype(np.float64) @ behind.astype(np.float64)
    return counts / max(1, len(before))


def _across(column: int) -> float:
    return (column + 0.5) * COLUMN


def _draw_lines(axes: Any, column: int, shares: NDArray[np.float64]) -> None:
    for (first, second), share in np.ndenumerate(shares):
        if share > 0:
            ends = [(first + 0.5) * ROW, (second + 0.5) * ROW]
            across = [_across(column), _across(column + 1)]
            axes.plot(across, ends, color="tab:blue", alpha=0.5, linewidth=WIDEST * share, solid_capstyle="butt")


def _draw_discs(axes: Any, column: int, shares: NDArray[np.float64]) -> None:
    for module, share in enumerate(shares):
        points = (72 * LARGEST) ** 2 * max(float(share), 0.01)
        axes.scatter([_across(column)], [(module + 0.5) * ROW], s=points, color="black", zorder=2)
        style = {**WORDS, "ha": "left", "va": "center", "zorder": 3}
        axes.text(_across(column) + 0.27, (module + 0.5) * ROW, str(module), **style)
