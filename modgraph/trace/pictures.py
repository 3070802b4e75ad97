"""Pictures of statistics.

Use of modules by group (Li et al., ICLR 2023, figure 3b); use and entropies over a training (Kirsch et al., NeurIPS
2018, figure 5); paths from route to route; sub-networks by step (MT-RMN, figure 4); growth of a model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from modgraph.inspect.page.content import Curves, Heatmap
from modgraph.inspect.trace_sections import (
    describe_measure,
    epoch_curves,
    growth_map,
    make_maps_by_step,
    make_maps_by_task,
    make_maps_of_groups,
    make_novelty_curves,
    numbers,
)
from modgraph.trace.charts import curves, heat_map
from modgraph.trace.errors import NoControllers, NoGroups, NoGrowth, NoHistory, NoPaths, NoSteps
from modgraph.trace.sheet import WORDS, Part, Sheet, arrange_parts, file_of, shorten
from modgraph.trace.statistics import choices_of, find_groupings, successive, use_by_groups
from modgraph.trace.steps import names_of, steps_by_task, strip_common_prefix, use_by_steps
from modgraph.trace.trace import RouteTrace, Trace

MOST_ROWS = 1000


def groups_picture(trace: Trace, suffix: str) -> bytes:
    """Render a table for each route and grouping: a row for each group, a column for each module. Raises
    `ModgraphError`."""
    parts = []
    for route in trace.routes if find_groupings(trace) else ():
        maps = make_maps_of_groups(use_by_groups(trace, route), numbers(route.modules))
        title = f"{route.name}: {route.pool}, {trace.split} (%)"
        parts.append(arrange_parts([heat_map(each) for each in maps], math.inf, title))
    return file_of(parts, suffix, NoGroups(split=trace.split), MOST_ROWS)


def training_picture(trace: Trace, suffix: str) -> bytes:
    """Render each module's share of the choices by epoch. Raises `ModgraphError`."""
    parts = []
    for route in (route for route in trace.routes if route.name in trace.history):
        names = [f"{shorten(route.short_pool)}.{module}" for module in range(route.modules)]
        title = f"{route.name}: {route.pool}, share of what was selected by epoch"
        chart = epoch_curves(names, trace.history[route.name].tolist(), title)
        parts.append(curves(chart, {f"1 / {route.modules}": 1 / route.modules}))
    return file_of(parts, suffix, NoHistory())


def controllers_picture(trace: Trace, suffix: str) -> bytes:
    """Render H_a and H_b in nats: the certainty of controllers, the variety of decisions. Raises `ModgraphError`."""
    parts, names = [], ["H_a: of a decision", "H_b: of the mean"]
    for route in (route for route in trace.routes if route.name in trace.entropies):
        title = f"{route.name}: entropy of its controller by epoch (nats)"
        chart = epoch_curves(names, trace.entropies[route.name].tolist(), title)
        parts.append(curves(chart, {f"log {route.modules}": math.log(route.modules)}))
    return file_of(parts, suffix, NoControllers())


WIDEST, LARGEST = 14.0, 0.36  # points of a line that all decisions take; inches across a disc of share 1
BETWEEN, DISC, EDGE = 1.5, 0.45, 0.4  # inches from route to route, from module to module, around


def paths_picture(trace: Trace, suffix: str) -> bytes:
    """Render a column for each route, a disc for each module, and lines as wide as the path is frequent. Raises
    `ModgraphError`."""
    parts = [_paths(trace, routes) for routes in successive(trace)]
    return file_of(parts, suffix, NoPaths())


def _paths(trace: Trace, routes: list[RouteTrace]) -> Part:
    """Lay out one diagram in inches, its first module on top."""
    width, height = len(routes) * BETWEEN, DISC * max(route.modules for route in routes)
    choices = choices_of(routes)

    def draw(sheet: Sheet, left: float, top: float) -> None:
        sheet.title(top + 0.2, f"paths of {routes[0].short_pool} by route, {trace.split}")
        axes = sheet.axes(left + EDGE, top + 0.7, width, height)
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        centres = [(column + 0.5) * BETWEEN for column in range(len(routes))]
        for across, (before, behind) in zip(pairwise(centres), pairwise(choices), strict=True):
            shares = before.T.astype(np.float64) @ behind.astype(np.float64) / max(1, len(before))
            for modules, share in np.ndenumerate(shares):
                if share > 0:
                    ends = [(module + 0.5) * DISC for module in modules]
                    style = {"color": "tab:blue", "alpha": 0.5, "solid_capstyle": "butt"}
                    axes.plot(across, ends, linewidth=WIDEST * share, **style)
        for route, centre, own in zip(routes, centres, choices, strict=True):
            name = shorten(route.name, int(BETWEEN / 0.09))
            sheet.write(left + EDGE + centre, top + 0.525, name, ha="center", va="center")
            for module, share in enumerate(own.mean(0) if len(own) else np.zeros(route.modules)):
                points = (72 * LARGEST) ** 2 * max(float(share), 0.01)
                down = (module + 0.5) * DISC
                axes.scatter([centre], [down], s=points, color="black", zorder=2)
                axes.text(centre + 0.27, down, str(module), ha="left", va="center", zorder=3, **WORDS)

    return Part(2 * EDGE + width, 0.7 + height + EDGE, draw)


STEP, PAGE = 0.33, 13.0  # inches across a step and a page
MOST_STEP_ROWS = 400


def steps_picture(trace: Trace, suffix: str) -> bytes:
    """Render how often each sub-network is active at each step of each task, and the tasks' shares of each; then the
    routes that several tasks use, connection by connection. Raises `ModgraphError`."""
    return file_of(parts_by_step(trace), suffix, NoSteps(), MOST_STEP_ROWS, PAGE)


def parts_by_step(trace: Trace) -> list[Part]:
    """Return the parts of the tasks, then one for each other route."""
    by_task, shared = steps_by_task(trace, use_by_steps(trace))
    names, more = strip_common_prefix(shared), "" if by_task is None else ", of several tasks"
    parts = []
    if by_task is not None:
        rows = by_task["sub_networks"]
        rows = [row | {"pool": pool} for row, (pool, _) in zip(rows, names_of(rows), strict=True)]
        *tasks, shares = make_maps_by_task(by_task | {"sub_networks": rows})
        maps = [_steps_heat_map(each, by_task["examples"][each.title]) for each in tasks]
        parts.append(arrange_parts([*maps, heat_map(shares)], PAGE, f"{describe_measure(by_task)}, {trace.split} (%)"))
    for name, use in shared.items():
        ends = {end: use[end] for end in ("senders", "modules") if use[end] is not None}
        short = {end: rows | {"pool": rows["pool"].rpartition(".")[2]} for end, rows in ends.items()}
        maps = [_steps_heat_map(each, use["examples"]) for each in make_maps_by_step(use | short)]
        parts.append(arrange_parts(maps[-1:] if len(maps) > 2 else maps, PAGE, f"{names[name]}{more} (%)"))
    return parts


def _steps_heat_map(chart: Heatmap, examples: Sequence[int]) -> Part:
    columns = [f"{step}\n{count}" for step, count in zip(chart.columns, examples, strict=True)]
    return heat_map(replace(chart, columns=columns), STEP, "step\nexamples")


MOST_TASKS = 24  # with names on the sheet


def growth_picture(trace: Trace, suffix: str) -> bytes:
    """Render a matrix of modules by pool and task, then a chart of each pool's detections. Raises `ModgraphError`."""
    pools = (trace.growth or {}).get("pools", {})
    parts = []
    if trace.growth is not None and pools:
        added, counts = growth_map(trace.growth), [pool["modules"] for pool in pools.values()]
        most = max(2, max(map(max, added.values)) + 1)
        chart = replace(added, title="", most=most)
        parts.append(arrange_parts([heat_map(chart, words=counts)], title="modules after each task"))
    charted = {name: pool for name, pool in pools.items() if any(each["novelty"] for each in pool["detections"])}
    return file_of([*parts, *(_detections(name, pool) for name, pool in charted.items())], suffix, NoGrowth())


def _detections(name: str, pool: Mapping[str, Any]) -> Part:
    """Render a line for each module over the batches of all scans, the threshold, and where the pool grew. A scan
    begins at a thin line, a task at a thick one with its name."""
    scans = [each for each in pool["detections"] if each["novelty"]]
    lines, offsets, tasks = make_novelty_curves(scans)
    grown = [start + each["batch"] for each, start in zip(scans, offsets, strict=False) if each["batch"] is not None]

    def mark(axes: Any) -> None:
        above = axes.get_xaxis_transform()
        if grown:
            style = {"color": "black", "transform": above, "clip_on": False}
            axes.plot(grown, [0.95] * len(grown), "v", label="one is added", **style)
        for start in offsets[:-1]:
            axes.axvline(start - 0.5, color="grey", linewidth=1.2 if start in tasks.values() else 0.4)
        for task, start in tasks.items() if len(tasks) <= MOST_TASKS else ():
            axes.text(start - 0.5, 1.02, shorten(task), transform=above, rotation=30, **WORDS)
        axes.set_xlim(-0.5, offsets[-1] - 0.5)

    levels = {} if pool["threshold"] is None else {"threshold": pool["threshold"]}
    chart = Curves(lines, f"{name}: novelty at detection", "batch of all looks")
    return curves(chart, levels, 0.45, mark)
