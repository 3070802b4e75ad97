"""Which modules the tokens at each position were sent to: the place on an image, the token, the step of a scan.

Axis letters: B examples, P positions, M modules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.entropies import shares_of
from modgraph.trace.places import Places, places_of_tokens
from modgraph.trace.routes import RouteTrace
from modgraph.trace.steps import step_axes
from modgraph.trace.trace import Trace

PLACE, TOKEN, STEP = "place", "token", "step"


@dataclass(frozen=True)
class Positions:
    """Each module's share of what each position selected, or of its gates, [positions, modules]; zero where no example
    has such a position. Of places on an image [rows, columns], some tokens `in_front` come first.
    """

    of: str
    use: list[list[float]]
    rows: int | None = None
    columns: int | None = None
    in_front: int = 0


def positions_of(trace: Trace) -> dict[str, Positions]:
    """The positions of each route that decides more than once for an example, by its name."""
    known, steps = places_of_tokens(trace.graph), step_axes(trace)
    found = {}
    for route in trace.routes:
        along = steps[route.name][1] if route.name in steps else None
        by_step = along is not None and (route.node not in trace.graph or along.senders is not None)
        axis = along.at if along is not None and by_step else _axis_of_tokens(route.chosen[-1].shape)
        if route.chosen[-1].shape[axis] > 1:
            use = _use_along(route, axis)
            places = None if by_step else known.get(trace.graph.inputs(route.node)["tokens"].node)
            found[route.name] = _positions(use, places, STEP if by_step else TOKEN)
    return found


def _axis_of_tokens(shape: tuple[int, ...]) -> int:
    """Of [B, ..., N, M] the axis of the senders; where there is one alone, the last before it that is longer."""
    return next((at for at in range(len(shape) - 2, 0, -1) if shape[at] > 1), len(shape) - 2)


def _use_along(route: RouteTrace, axis: int) -> list[list[float]]:
    """The shares of modules at each position along an axis, summed over all others."""
    chosen = np.moveaxis(route.chosen[-1], axis, 0)
    totals_PM: NDArray[np.float64] = chosen.reshape(len(chosen), -1, route.modules).sum(1, dtype=np.float64)
    found: list[list[float]] = shares_of(totals_PM).tolist()
    return found


def _positions(use: list[list[float]], places: Places | None, of: str) -> Positions:
    if places is None or places.tokens != len(use):
        return Positions(of, use)
    return Positions(PLACE, use, places.rows, places.columns, places.in_front)
