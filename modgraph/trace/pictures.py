"""Pictures of statistics: use of modules by group (Li et al., ICLR 2023, figure 3b), use and entropies over a training
(Kirsch et al., NeurIPS 2018, figure 5), paths from route to route, and how a model grew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.errors import NoControllers, NoGroups, NoGrowth, NoHistory, NoPaths
from modgraph.trace.sheet import WORDS, Part, Sheet, colours_of, file_of, name_lines, shortened
from modgraph.trace.statistics import choices_of, groupings_of, successive, use_by_groups
from modgraph.trace.trace import RouteTrace, Trace

MOST_ROWS = 1000
TITLE, HEAD, ROW, COLUMN, NAMES, MARGIN = 0.35, 0.3, 0.22, 0.5, 1.2, 0.3  # inches


def groups_picture(trace: Trace, suffix: str) -> bytes:
    """A table for each route and grouping: a row for each group, a column for each module. Raises `ModgraphError`."""
    parts = [_tables(trace, route) for route in trace.routes] if groupings_of(trace) else []
    return file_of(parts, suffix, NoGroups(split=trace.split), MOST_ROWS, above=0.1, below=MARGIN - 0.1)


def _tables(trace: Trace, route: RouteTrace) -> Part:
    """Names of modules above, of groups on the left, and shares in percent on their colours."""
    tables = use_by_groups(trace, route)
    width, rows = NAMES + route.modules * COLUMN + MARGIN, max(map(len, tables.values()))

    def draw(sheet: Sheet, left: float, top: float) -> None:
        sheet.title(top + 0.2, f"{route.name}: {route.pool}, {trace.split}")
        corner, head, first = left + MARGIN / 2 + NAMES, top + TITLE + HEAD / 2, top + TITLE + HEAD
        for grouping, shares in tables.items():
            most = max(max(map(max, shares.values())), 1e-9)
            sheet.heat_map(corner, first, [*shares.values()], (COLUMN, ROW), most)
            sheet.write(corner - 0.08, head, grouping, ha="right", va="center", style="italic")
            for module in range(route.modules):
                sheet.write(corner + (module + 0.5) * COLUMN, head, str(module), ha="center", va="center")
            sheet.name_rows(corner, first, ROW, [shortened(group, 16) for group in shares])
            corner += width

    return Part(MARGIN + width * len(tables), TITLE + HEAD + ROW * rows + MARGIN, draw, rows)


CHART_TITLE, CHART_LEFT, CHART_WIDTH = 0.45, 0.7, 5.5  # inches


def training_picture(trace: Trace, suffix: str) -> bytes:
    """Each module's share of what was selected. Raises `ModgraphError`."""
    parts = []
    for route in (route for route in trace.routes if route.name in trace.history):
        names = [f"{shortened(route.short_pool)}.{module}" for module in range(route.modules)]
        title = f"{route.name}: {route.pool}, share of what was selected by epoch"
        lines = dict(zip(names, colours_of(route.modules), strict=True))
        parts.append(_chart(title, trace.history[route.name], lines, 1 / route.modules))
    return file_of(parts, suffix, NoHistory(), below=0.2)


def controllers_picture(trace: Trace, suffix: str) -> bytes:
    """H_a and H_b, in nats: how sure controllers are, and how unlike their decisions. Raises `ModgraphError`."""
    parts, lines = [], {"H_a: of a decision": "tab:blue", "H_b: of the mean": "tab:orange"}
    for route in (route for route in trace.routes if route.name in trace.entropies):
        title, level = f"{route.name}: entropy of its controller by epoch (nats)", math.log(route.modules)
        parts.append(_chart(title, trace.entropies[route.name], lines, level, f"log {route.modules}"))
    return file_of(parts, suffix, NoControllers(), below=0.2)


def _chart(
    title: str, values: NDArray[np.float64], lines: Mapping[str, Any], level: float, level_name: str | None = None
) -> Part:
    """A line in a colour for each column of values [epochs, lines], and a dotted one at a level."""

    def draw(sheet: Sheet, left: float, top: float) -> None:
        sheet.title(top + 0.3, title)
        axes = sheet.axes(left + CHART_LEFT, top + CHART_TITLE, CHART_WIDTH, 1.8)
        epochs = np.arange(1, len(values) + 1)
        for (name, colour), column in zip(lines.items(), values.T, strict=True):
            axes.plot(epochs, column, color=colour, label=name, marker="." if len(epochs) == 1 else None)
        axes.axhline(level, color="grey", linestyle=":", linewidth=1, label=level_name)
        name_lines(axes)

    return Part(CHART_LEFT + CHART_WIDTH + 2.0, CHART_TITLE + 1.8 + 0.5, draw)


WIDEST, LARGEST = 14.0, 0.36  # points of a line that all take; inches across a disc that is always chosen
BETWEEN, DISC, EDGE = 1.5, 0.45, 0.4  # inches from route to route, from module to module, around


def paths_picture(trace: Trace, suffix: str) -> bytes:
    """A column for each route, a disc for each module, lines as wide as often. Raises `ModgraphError`."""
    parts = [_paths(trace, routes) for routes in successive(trace)]
    return file_of(parts, suffix, NoPaths(), above=0.1, below=EDGE - 0.1)


def _paths(trace: Trace, routes: list[RouteTrace]) -> Part:
    """One drawing in inches, its first module on top."""
    width, height = len(routes) * BETWEEN, DISC * max(route.modules for route in routes)
    chosen = choices_of(routes)

    def draw(sheet: Sheet, left: float, top: float) -> None:
        sheet.title(top + 0.2, f"paths of {routes[0].short_pool} by route, {trace.split}")
        axes = sheet.axes(left + EDGE, top + 0.7, width, height)
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        centres = [(column + 0.5) * BETWEEN for column in range(len(routes))]
        for across, (before, behind) in zip(pairwise(centres), pairwise(chosen), strict=True):
            shares = before.T.astype(np.float64) @ behind.astype(np.float64) / max(1, len(before))
            for modules, share in np.ndenumerate(shares):
                if share > 0:
                    ends = [(module + 0.5) * DISC for module in modules]
                    style = {"color": "tab:blue", "alpha": 0.5, "solid_capstyle": "butt"}
                    axes.plot(across, ends, linewidth=WIDEST * share, **style)
        for route, centre, own in zip(routes, centres, chosen, strict=True):
            name = shortened(route.name, int(BETWEEN / 0.09))
            sheet.write(left + EDGE + centre, top + 0.525, name, ha="center", va="center")
            for module, share in enumerate(own.mean(0) if len(own) else np.zeros(route.modules)):
                points = (72 * LARGEST) ** 2 * max(float(share), 0.01)
                down = (module + 0.5) * DISC
                axes.scatter([centre], [down], s=points, color="black", zorder=2)
                axes.text(centre + 0.27, down, str(module), ha="left", va="center", zorder=3, **WORDS)

    return Part(2 * EDGE + width, 0.7 + height + EDGE, draw)


MOST_TASKS = 24  # named on the sheet
FEW = 60  # batches, each of which has a larger dot
POOLS, TASK, POOL = 2.4, 0.55, 0.32  # inches of names of pools, across a task, down a pool


def growth_picture(trace: Trace, suffix: str) -> bytes:
    """A matrix of modules by pool and task, then a chart of each pool's detections. Raises `ModgraphError`."""
    pools = (trace.growth or {}).get("pools", {})
    charted = {name: pool for name, pool in pools.items() if any(each["novelty"] for each in pool["detections"])}
    parts = [_growth(trace.growth["tasks"], pools)] if trace.growth is not None and pools else []
    return file_of([*parts, *(_detections(name, pool) for name, pool in charted.items())], suffix, NoGrowth())


def _growth(tasks: Sequence[str], pools: Mapping[str, Any]) -> Part:
    """A cell for each pool and task: how many modules there are at its end, darker where some were added in it."""
    counts = [pool["modules"] for pool in pools.values()]
    added = [[sum(each["task"] == task for each in pool["added"]) for task in tasks] for pool in pools.values()]
    head = CHART_TITLE + 0.1 + 0.075 * max((len(task) for task in tasks), default=0)

    def draw(sheet: Sheet, left: float, top: float) -> None:
        sheet.title(top + 0.3, "modules after each task")
        most = max(2, max(map(max, added)) + 1)
        place = left + POOLS, top + head
        sheet.heat_map(*place, added, (TASK, POOL), most, lambda row, column: str(counts[row][column]))
        sheet.name_rows(*place, POOL, [shortened(name, 28) for name in pools])
        for at, task in enumerate(tasks):
            sheet.write(place[0] + (at + 0.5) * TASK, place[1] - 0.05, task, rotation=90, ha="center", va="bottom")

    return Part(max(POOLS + TASK * len(tasks) + 0.3, 4.0), head + POOL * len(pools) + 0.25, draw)


def _detections(name: str, pool: Mapping[str, Any]) -> Part:
    """A line for each module over the batches of all scans, against what it must exceed; where the pool grew. A scan
    begins at a thin line, a task at a thick one with its name."""
    scans = [each for each in pool["detections"] if each["novelty"]]
    starts = np.cumsum([0, *(len(each["novelty"]) for each in scans)]).tolist()
    modules = max(len(batch) for scan in scans for batch in scan["novelty"])
    tasks = [scan["task"] for scan in scans]
    first = [at for at, task in enumerate(tasks) if at == 0 or tasks[at - 1] != task]

    def draw(sheet: Sheet, left: float, top: float) -> None:
        sheet.title(top + 0.3, f"{name}: novelty at detection")
        axes = sheet.axes(left + 0.7, top + CHART_TITLE + 0.45, 6.2, 1.5)
        for module in range(modules):
            points = []  # a gap after each scan, and before there was the module
            for scan, start in zip(scans, starts, strict=False):
                novelty = [batch[module] if module < len(batch) else None for batch in scan["novelty"]]
                points += [*enumerate(novelty, start), (math.nan, None)]
            places, heights = np.array(points, np.float64).T
            size = 5 if starts[-1] < FEW else 2
            axes.plot(places, heights, linewidth=1, marker=".", markersize=size, label=f"module {module}")
        if pool["threshold"] is not None:
            axes.axhline(pool["threshold"], color="black", linestyle=":", linewidth=1, label="threshold")
        grown = [start + each["batch"] for each, start in zip(scans, starts, strict=False) if each["batch"] is not None]
        above = axes.get_xaxis_transform()
        if grown:
            style = {"color": "black", "transform": above, "clip_on": False}
            axes.plot(grown, [0.95] * len(grown), "v", label="one is added", **style)
        for at, start in enumerate(starts[:-1]):
            axes.axvline(start - 0.5, color="grey", linewidth=1.2 if at in first else 0.4)
        for at in first if len(first) <= MOST_TASKS else ():
            axes.text(starts[at] - 0.5, 1.02, shortened(tasks[at]), transform=above, rotation=30, **WORDS)
        axes.set_xlim(-0.5, starts[-1] - 0.5)
        axes.set_xlabel("batch of all looks", **WORDS)
        name_lines(axes)

    return Part(0.7 + 6.2 + 1.5, CHART_TITLE + 0.45 + 1.5 + 0.55, draw)
