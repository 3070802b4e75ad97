"""How a model grew: the modules of each pool over the tasks, and how novel each batch was where it was looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.trace.errors import NoGrowth
from modgraph.trace.sheet import WORDS, Sheet, file_of, shortened
from modgraph.trace.trace import Trace

Told = Mapping[str, Any]

# in inches
TITLE, NAMES, LEFT, CELL, ROW, WIDTH, HEIGHT, LEGEND, BELOW = 0.45, 0.45, 2.4, 0.55, 0.32, 6.2, 1.5, 1.5, 0.55
NAME = 28  # letters of a pool's name
MOST_TASKS = 24  # named on the sheet
FEW = 60  # batches, each of which has a larger dot


def growth_picture(trace: Trace, suffix: str) -> bytes:
    """A matrix of modules by pool and task, then a chart of each pool's detections. Raises `ModgraphError`."""
    growth = trace.growth
    if growth is None or not growth["pools"]:
        raise ModgraphError([NoGrowth()])
    return file_of(lambda: _drawn(growth), suffix)


def _drawn(growth: Told) -> Sheet:
    tasks, pools = growth["tasks"], growth["pools"]
    charted = {name: pool for name, pool in pools.items() if any(each["novelty"] for each in pool["detections"])}
    words = 0.1 + 0.075 * max((len(task) for task in tasks), default=0)
    top = TITLE + words + ROW * len(pools) + 0.25
    step = TITLE + NAMES + HEIGHT + BELOW
    width = max(LEFT + CELL * len(tasks) + 0.3, 0.7 + WIDTH + LEGEND if charted else 4.0)
    sheet = Sheet.blank(width, top + step * len(charted))
    sheet.title(0.3, "modules after each task")
    _draw_matrix(sheet, TITLE + words, tasks, pools)
    for at, (name, pool) in enumerate(charted.items()):
        sheet.title(top + at * step + 0.3, f"{name}: novelty at detection")
        _draw_detections(sheet, top + at * step + TITLE + NAMES, pool)
    return sheet


def _draw_matrix(sheet: Sheet, top: float, tasks: Sequence[str], pools: Mapping[str, Told]) -> None:
    """A cell for each pool and task: how many modules there are at its end, darker where some were added in it."""
    counts_PT = np.array([pool["modules"] for pool in pools.values()])
    added_PT = np.array([[sum(each["task"] == task for each in p["added"]) for task in tasks] for p in pools.values()])
    axes = sheet.axes(LEFT, top, CELL * len(tasks), ROW * len(pools))
    axes.imshow(added_PT, cmap="Blues", vmin=0, vmax=max(2, int(added_PT.max()) + 1), aspect="auto")
    for row, column in np.ndindex(counts_PT.shape):
        axes.text(column, row, str(counts_PT[row, column]), ha="center", va="center", **WORDS)
    axes.set_yticks(range(len(pools)), [shortened(name, NAME) for name in pools], **WORDS)
    axes.set_xticks(range(len(tasks)), tasks, rotation=90, **WORDS)
    axes.tick_params(length=0, bottom=False, labelbottom=False, labeltop=True)
    for side in axes.spines.values():
        side.set_visible(False)


def _draw_detections(sheet: Sheet, top: float, pool: Told) -> None:
    """A line for each module over the batches of all looks, against what it must exceed; where the pool grew."""
    axes = sheet.axes(0.7, top, WIDTH, HEIGHT)
    scans = [each for each in pool["detections"] if each["novelty"]]
    starts = np.cumsum([0, *(len(each["novelty"]) for each in scans)]).tolist()
    size = 5 if starts[-1] < FEW else 2
    for module, values in enumerate(_by_module(scans)):
        lines = [*zip(starts, np.split(values, starts[1:-1]), strict=False)]
        places = np.concatenate([[*range(start, start + len(line)), np.nan] for start, line in lines])
        heights = np.concatenate([[*line, np.nan] for _, line in lines])
        axes.plot(places, heights, linewidth=1, marker=".", markersize=size, label=f"module {module}")
    if pool["threshold"] is not None:
        axes.axhline(pool["threshold"], color="black", linestyle=":", linewidth=1, label="threshold")
    grown = [start + each["batch"] for each, start in zip(scans, starts, strict=False) if each["batch"] is not None]
    if grown:
        above = axes.get_xaxis_transform()
        axes.plot(grown, [0.95] * len(grown), "v", color="black", transform=above, label="one is added", clip_on=False)
    _draw_looks(axes, scans, starts)
    axes.set_ylim(0, None)
    axes.set_xlabel("batch of all looks", **WORDS)
    axes.tick_params(labelsize=8)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=WORDS["fontsize"])


def _draw_looks(axes: Any, scans: Sequence[Told], starts: Sequence[int]) -> None:
    """A look begins at a thin line, a task at a thick one with its name."""
    names = [scan["task"] for scan in scans]
    first = [at for at, name in enumerate(names) if at == 0 or names[at - 1] != name]
    for at, start in enumerate(starts[:-1]):
        axes.axvline(start - 0.5, color="grey", linewidth=1.2 if at in first else 0.4)
    for at in first if len(first) <= MOST_TASKS else ():
        place = axes.get_xaxis_transform()
        axes.text(starts[at] - 0.5, 1.02, shortened(names[at]), transform=place, rotation=30, **WORDS)
    axes.set_xlim(-0.5, starts[-1] - 0.5)


def _by_module(scans: Sequence[Told]) -> list[NDArray[np.float64]]:
    """The novelty to each module over the batches of all looks; none before there was the module."""
    batches = [[np.nan if each is None else each for each in batch] for scan in scans for batch in scan["novelty"]]
    modules = max(map(len, batches))
    return list(np.array([batch + [np.nan] * (modules - len(batch)) for batch in batches]).T)
