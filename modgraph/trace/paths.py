"""Which modules follow each other from route to route (Kirsch et al., NeurIPS 2018, figure 2).

Axis letters: D decisions, one for each token at each route; M modules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.routes import RouteTrace
from modgraph.trace.trace import Trace
from modgraph.types import Axis

MOST = 20
SHOWN = 8


@dataclass(frozen=True)
class Path:
    """The modules chosen at each route, and the share of decisions that took this path."""

    modules: list[list[int]]
    share: float


@dataclass(frozen=True)
class Paths:
    """The most frequent paths through successive routes that decide for the same tokens, and how many there are."""

    routes: list[str]
    decisions: int
    different: int
    paths: list[Path]


def successive(trace: Trace) -> list[list[RouteTrace]]:
    """Routes that choose, two or more that decide for the same tokens, in the order of work."""
    found: dict[tuple[Axis, ...], list[RouteTrace]] = {}
    for route in trace.routes:
        if route.selects:
            found.setdefault(route.decision.senders, []).append(route)
    return [routes for routes in found.values() if len(routes) > 1]


def choices_of(routes: list[RouteTrace]) -> list[NDArray[np.bool_]]:
    """What each route chose after its last round, [D, M], for the tokens that are no padding."""
    chosen = [route.chosen[-1].reshape(-1, route.modules) > 0 for route in routes]
    real_D = np.all([each.any(-1) for each in chosen], axis=0)
    return [each[real_D] for each in chosen]


def paths_of(trace: Trace) -> list[Paths]:
    """The paths through each group of successive routes."""
    return [_paths(routes) for routes in successive(trace)]


def _paths(routes: list[RouteTrace]) -> Paths:
    chosen = choices_of(routes)
    rows, counts = np.unique(np.concatenate(chosen, axis=1), axis=0, return_counts=True)
    cuts = np.cumsum([route.modules for route in routes])[:-1]
    order = np.argsort(-counts, kind="stable")[:MOST]
    found = [
        Path([np.flatnonzero(part).tolist() for part in np.split(rows[at], cuts)], float(counts[at] / counts.sum()))
        for at in order
    ]
    return Paths([route.name for route in routes], len(chosen[0]), len(rows), found)


def paths_tables(trace: Trace) -> list[str]:
    """The paths to read: a text for each group of routes."""
    return [_table(paths) for paths in paths_of(trace)]


def _table(paths: Paths) -> str:
    head = f"paths through {', '.join(paths.routes)}: {paths.different} different"
    lines = [f"  {path.share:6.1%}  {_named(path)}" for path in paths.paths[:SHOWN]]
    return "\n".join([head, *lines])


def _named(path: Path) -> str:
    return " → ".join("+".join(map(str, modules)) for modules in path.modules)
