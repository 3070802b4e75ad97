"""How sure controllers are over a training, and how unlike their decisions (Kirsch et al., NeurIPS 2018, figure 5)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.trace.errors import NoControllers
from modgraph.trace.routes import RouteTrace
from modgraph.trace.sheet import WORDS, Sheet, file_of
from modgraph.trace.trace import Trace

# in inches
TITLE, LEFT, WIDTH, HEIGHT, LEGEND, BELOW = 0.45, 0.7, 5.5, 1.8, 2.0, 0.5
LINES = {"H_a: of a decision": "tab:blue", "H_b: of the mean": "tab:orange"}


def controllers_picture(trace: Trace, suffix: str) -> bytes:
    """A chart for each route: H_a and H_b over the epochs, in nats. Raises `ModgraphError`."""
    routes = [route for route in trace.routes if route.name in trace.entropies]
    if not routes:
        raise ModgraphError([NoControllers()])
    return file_of(lambda: _drawn(trace, routes), suffix)


def _drawn(trace: Trace, routes: list[RouteTrace]) -> Sheet:
    step = TITLE + HEIGHT + BELOW
    sheet = Sheet.blank(LEFT + WIDTH + LEGEND, 0.2 + step * len(routes))
    for at, route in enumerate(routes):
        sheet.title(at * step + 0.3, f"{route.name}: entropy of its controller by epoch (nats)")
        _draw_chart(sheet, at * step + TITLE, trace.entropies[route.name], route.modules)
    return sheet


def _draw_chart(sheet: Sheet, top: float, entropies_E2: NDArray[np.float64], modules: int) -> None:
    axes = sheet.axes(LEFT, top, WIDTH, HEIGHT)
    epochs = np.arange(1, len(entropies_E2) + 1)
    marker = "." if len(epochs) == 1 else None
    for (name, colour), values in zip(LINES.items(), entropies_E2.T, strict=True):
        axes.plot(epochs, values, color=colour, label=name, marker=marker)
    axes.axhline(math.log(modules), color="grey", linestyle=":", linewidth=1, label=f"log {modules}")
    axes.set_ylim(0, None)
    axes.tick_params(labelsize=8)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=WORDS["fontsize"])
