"""Pictures of statistics.

Use of modules by group (Li et al., ICLR 2023, figure 3b); use and entropies over a training (Kirsch et al., NeurIPS
2018, figure 5); paths from route to route; sub-networks by step (MT-RMN, figure 4); growth of a model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.inspect.charts import Spec, describe_with_data
from modgraph.inspect.charts.heat_map import measure
from modgraph.inspect.charts.picture import arrange, render, stack
from modgraph.inspect.page.content import Curves, Heatmap
from modgraph.inspect.trace_sections import (
    describe_measure,
    epoch_curves,
    growth_map,
    make_maps_by_step,
    make_maps_by_task,
    make_maps_of_groups,
    make_novelty_charts,
    make_path_chart,
    numbers,
)
from modgraph.trace.errors import NoControllers, NoGroups, NoGrowth, NoHistory, NoPaths, NoSteps, TooTall
from modgraph.trace.statistics import find_groupings, find_paths, use_by_groups
from modgraph.trace.steps import names_of, steps_by_task, strip_common_prefix, use_by_steps
from modgraph.trace.trace import Trace

MOST_ROWS, MOST_STEP_ROWS = 1000, 400
WIDTH = 420  # of curves with what stands around them


def groups_picture(trace: Trace, suffix: str) -> bytes:
    """Render a table for each route and grouping: a row for each group, a column for each module. Raises
    `ModgraphError`."""
    maps = [
        (f"{route.name}: {route.pool}, {trace.split} (%)", [*make_maps_of_groups(by, numbers(route.modules))])
        for route in trace.routes
        if find_groupings(trace) and (by := use_by_groups(trace, route))
    ]
    _refuse_tall(sum(len(each.rows) for _, found in maps for each in found), MOST_ROWS)
    return _file_of(
        [row for title, found in maps for row in _arrange_maps(found, title)], suffix, NoGroups(split=trace.split)
    )


def training_picture(trace: Trace, suffix: str) -> bytes:
    """Render each module's share of the choices by epoch. Raises `ModgraphError`."""
    charts = []
    for route in (route for route in trace.routes if route.name in trace.history):
        names = [f"{route.short_pool}.{module}" for module in range(route.modules)]
        title = f"{route.name}: {route.pool}, share of what was selected by epoch"
        chart = epoch_curves(names, trace.history[route.name].tolist(), title)
        charts.append(replace(chart, levels=[(f"1 / {route.modules}", 1 / route.modules)]))
    return _file_of(_arrange_curves(charts), suffix, NoHistory())


def controllers_picture(trace: Trace, suffix: str) -> bytes:
    """Render H_a and H_b in nats: the certainty of controllers, the variety of decisions. Raises `ModgraphError`."""
    charts, names = [], ["H_a: of a decision", "H_b: of the mean"]
    for route in (route for route in trace.routes if route.name in trace.entropies):
        title = f"{route.name}: entropy of its controller by epoch (nats)"
        chart = epoch_curves(names, trace.entropies[route.name].tolist(), title)
        charts.append(replace(chart, levels=[(f"log {route.modules}", math.log(route.modules))]))
    return _file_of(_arrange_curves(charts), suffix, NoControllers())


def paths_picture(trace: Trace, suffix: str) -> bytes:
    """Render a column for each route, a disc for each module, and lines as wide as the path is frequent. Raises
    `ModgraphError`."""
    title = f"paths from route to route, {trace.split}"
    charts = [replace(make_path_chart(found), title=title) for found in find_paths(trace)]
    rows = [row for chart in charts for row in arrange([("", 0, describe_with_data(chart))], chart.title)]
    return _file_of(rows, suffix, NoPaths())


def steps_picture(trace: Trace, suffix: str) -> bytes:
    """Render how often each sub-network is active at each step of each task, and the tasks' shares of each; then the
    routes that several tasks use, connection by connection. Raises `ModgraphError`."""
    found = maps_by_step(trace)
    _refuse_tall(sum(len(each.rows) for _, maps in found for each in maps), MOST_STEP_ROWS)
    return _file_of([row for title, maps in found for row in _arrange_maps(maps, title)], suffix, NoSteps())


def maps_by_step(trace: Trace) -> list[tuple[str, list[Heatmap]]]:
    """Return the maps of the tasks, then those of each other route, with a title."""
    by_task, shared = steps_by_task(trace, use_by_steps(trace))
    names, more = strip_common_prefix(shared), "" if by_task is None else ", of several tasks"
    found = []
    if by_task is not None:
        rows = by_task["sub_networks"]
        rows = [row | {"pool": pool} for row, (pool, _) in zip(rows, names_of(rows), strict=True)]
        *tasks, shares = make_maps_by_task(by_task | {"sub_networks": rows})
        maps = [_count_examples(each, by_task["examples"][each.title]) for each in tasks]
        found.append((f"{describe_measure(by_task)}, {trace.split} (%)", [*maps, shares]))
    for name, use in shared.items():
        ends = {end: use[end] for end in ("senders", "modules") if use[end] is not None}
        short = {end: rows | {"pool": rows["pool"].rpartition(".")[2]} for end, rows in ends.items()}
        maps = [_count_examples(each, use["examples"]) for each in make_maps_by_step(use | short)]
        found.append((f"{names[name]}{more} (%)", maps[-1:] if len(maps) > 2 else maps))
    return found


def _count_examples(chart: Heatmap, examples: Sequence[int]) -> Heatmap:
    columns = [f"{step}\n{count}" for step, count in zip(chart.columns, examples, strict=True)]
    return replace(chart, columns=columns, x_label="step, and below it the examples that have it")


def growth_picture(trace: Trace, suffix: str) -> bytes:
    """Render a matrix of modules by pool and task, then a chart of each pool's detections. Raises `ModgraphError`."""
    pools = (trace.growth or {}).get("pools", {})
    rows = []
    if trace.growth is not None and pools:
        rows += _arrange_maps([replace(growth_map(trace.growth), title="")], "modules after each task")
    return _file_of([*rows, *_arrange_curves([*make_novelty_charts(pools)])], suffix, NoGrowth())


def _arrange_maps(maps: Sequence[Heatmap], title: str) -> list[Spec]:
    return arrange([(each.title, measure(each), describe_with_data(each)) for each in maps], title)


def _arrange_curves(charts: Sequence[Curves]) -> list[Spec]:
    return arrange([(each.title, WIDTH, describe_with_data(each)) for each in charts]) if charts else []


def _refuse_tall(rows: int, most: int) -> None:
    if rows > most:
        raise ModgraphError([TooTall(rows=rows, most=most)])


def _file_of(rows: Sequence[Spec], suffix: str, none: Diagnostic) -> bytes:
    """Render rows of charts as a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`: `none` if there are none."""
    if not rows:
        raise ModgraphError([none])
    return render(stack(rows), suffix)
