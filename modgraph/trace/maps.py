"""Gates laid out as maps over the image that tokens were made of.

Axis letters: R rounds, B examples, N senders, M modules, H and W rows and columns of the grid of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.trace.errors import NotOfAnImage
from modgraph.trace.places import Places, places_of_tokens
from modgraph.trace.routes import RouteTrace
from modgraph.trace.trace import Trace

LEAST_RANGE = 0.1  # of gates on the scale of colours, so that rounding is not painted as a pattern


@dataclass(frozen=True)
class Maps:
    """The gates of one route, laid out as its tokens lie on an image: gates [R, B, H, W, M].

    Where a router chooses some of the modules, `chosen` are their numbers, [B, H, W, K], the largest gate first; −1
    stands for none.
    """

    route: RouteTrace
    image: str
    gates: NDArray[Any]
    chosen: NDArray[np.int64] | None

    @property
    def scale(self) -> tuple[float, float]:
        """From the smallest gate to the largest, widened to a range that is worth showing."""
        low, high = float(self.gates.min()), float(self.gates.max())
        spare = max(0.0, LEAST_RANGE - (high - low)) / 2
        return low - spare, high + spare


def maps_of(trace: Trace) -> list[Maps]:
    """The routes whose tokens are places of an image. Raises `ModgraphError` if there is none."""
    known = places_of_tokens(trace.graph)
    found = []
    for route in trace.routes:
        if route.node not in trace.graph:  # its tokens are of one step of a scan
            continue
        places = known.get(trace.graph.inputs(route.node)["tokens"].node)
        if places is not None and _covers(places, route.gates):
            found.append(Maps(route, places.image, _laid_out(route.gates, places), _chosen(route, places)))
    if not found:
        raise ModgraphError([NotOfAnImage(routes=", ".join(route.name for route in trace.routes))])
    return found


def _laid_out(record: NDArray[Any], places: Places) -> NDArray[Any]:
    """A record [R, B, N, M] as [R, B, H, W, M], tokens without a place left out."""
    grid = (*record.shape[:2], places.rows, places.columns, record.shape[-1])
    return record[:, :, places.in_front :].reshape(grid)


def _chosen(route: RouteTrace, places: Places) -> NDArray[np.int64] | None:
    """The modules that were chosen after the last round, if the router leaves any out."""
    if not route.selects:
        return None
    selected = _laid_out(route.chosen, places)[-1] > 0
    most = int(selected.sum(-1).max())
    if most == route.modules:
        return None
    ranked = np.where(selected, _laid_out(route.gates, places)[-1], -np.inf)
    order = np.argsort(-ranked, axis=-1, kind="stable")[..., :most]
    return np.where(np.take_along_axis(selected, order, -1), order, -1)


def _covers(places: Places, gates: NDArray[Any]) -> bool:
    """Whether each sender is one of the tokens: there may be outer axes, or one sender that holds them all."""
    return gates.ndim == 4 and gates.shape[2] == places.tokens
