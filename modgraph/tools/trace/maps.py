"""Gates laid out as maps over the image that tokens were made of.

Axis letters: R rounds, B examples, N senders, M modules, H and W rows and columns of the grid of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from modgraph.diagnostics import ModgraphError
from modgraph.tools.trace.errors import NotOfAnImage
from modgraph.tools.trace.places import Places, places_of_tokens
from modgraph.tools.trace.record import RouteTrace
from modgraph.tools.trace.trace import Trace

LEAST_RANGE = 0.1  # of gates on the scale of colours, so that rounding is not painted as a pattern


@dataclass(frozen=True)
class Maps:
    """The gates of one route, laid out as its tokens lie on an image: gates [R, B, H, W, M]."""

    route: RouteTrace
    image: str
    gates: NDArray[Any]

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
        places = known.get(trace.graph.inputs(route.name)["tokens"].node)
        if places is not None and _covers(places, route.gates):
            grid = (*route.gates.shape[:2], places.rows, places.columns, route.modules)
            found.append(Maps(route, places.image, route.gates[:, :, places.in_front :].reshape(grid)))
    if not found:
        raise ModgraphError([NotOfAnImage(routes=", ".join(route.name for route in trace.routes))])
    return found


def _covers(places: Places, gates: NDArray[Any]) -> bool:
    """Whether each sender is one of the tokens: there may be outer axes, or one sender that holds them all."""
    return gates.ndim == 4 and gates.shape[2] == places.tokens
