"""Routes over a training, a chart for each: the use of their modules; how sure controllers are, and how unlike their
decisions (Kirsch et al., NeurIPS 2018, figure 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.trace.colours import colours_of
from modgraph.trace.errors import NoControllers, NoHistory
from modgraph.trace.sheet import WORDS, Sheet, file_of, shortened
from modgraph.trace.trace import Trace

TITLE, LEFT, WIDTH, HEIGHT, LEGEND, BELOW = 0.45, 0.7, 5.5, 1.8, 2.0, 0.5  # inches
ENTROPIES = "H_a: of a decision", "H_b: of the mean"


@dataclass(frozen=True)
class Chart:
    """A line for each column of values [epochs, lines], and a dotted one at a level."""

    title: str
    values: NDArray[np.float64]
    lines: Sequence[tuple[str, Any]]  # names and colours
    level: float
    level_name: str | None = None

    def draw(self, sheet: Sheet, top: float) -> None:
        sheet.title(top + 0.3, self.title)
        axes = sheet.axes(LEFT, top + TITLE, WIDTH, HEIGHT)
        epochs = np.arange(1, len(self.values) + 1)
        for (name, colour), values in zip(self.lines, self.values.T, strict=True):
            axes.plot(epochs, values, color=colour, label=name, marker="." if len(epochs) == 1 else None)
        axes.axhline(self.level, color="grey", linestyle=":", linewidth=1, label=self.level_name)
        axes.set_ylim(0, None)
        axes.tick_params(labelsize=8)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=WORDS["fontsize"])


def training_picture(trace: Trace, suffix: str) -> bytes:
    """Each module's share of what was selected. Raises `ModgraphError`."""
    charts = []
    for route in trace.routes:
        if route.name in trace.history:
            names = (f"{shortened(route.short_pool)}.{module}" for module in range(route.modules))
            lines = [*zip(names, colours_of(route.modules), strict=True)]
            title = f"{route.name}: {route.pool}, share of what was selected by epoch"
            charts.append(Chart(title, trace.history[route.name], lines, 1 / route.modules))
    if not charts:
        raise ModgraphError([NoHistory()])
    return file_of(lambda: _drawn(charts), suffix)


def controllers_picture(trace: Trace, suffix: str) -> bytes:
    """H_a and H_b, in nats. Raises `ModgraphError`."""
    lines = [*zip(ENTROPIES, ("tab:blue", "tab:orange"), strict=True)]
    charts = [
        Chart(
            f"{route.name}: entropy of its controller by epoch (nats)",
            trace.entropies[route.name],
            lines,
            math.log(route.modules),
            f"log {route.modules}",
        )
        for route in trace.routes
        if route.name in trace.entropies
    ]
    if not charts:
        raise ModgraphError([NoControllers()])
    return file_of(lambda: _drawn(charts), suffix)


def _drawn(charts: Sequence[Chart]) -> Sheet:
    step = TITLE + HEIGHT + BELOW
    sheet = Sheet.blank(LEFT + WIDTH + LEGEND, 0.2 + step * len(charts))
    for at, chart in enumerate(charts):
        chart.draw(sheet, at * step)
    return sheet
