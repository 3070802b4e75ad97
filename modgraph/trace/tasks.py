"""Which modules each task is served by, where a model has several targets.

A route serves a task where what is compared with the task's target depends on the route.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from modgraph.trace.entropies import shares_of
from modgraph.trace.routes import RouteTrace, routes_behind
from modgraph.trace.trace import Trace

Tasks = dict[str, tuple[str, ...]]  # routes, by target


def tasks_of(trace: Trace) -> Tasks:
    """The traced routes that serve each target; none where there are not several targets."""
    if len(trace.predictions) < 2:
        return {}
    behind = {target: routes_behind(trace.graph, [result]) for target, result in trace.predictions.items()}
    return {
        target: tuple(route.name for route in trace.routes if route.name in names) for target, names in behind.items()
    }


def use_by_task(trace: Trace) -> dict[str, dict[str, list[float]]]:
    """Each module's share of what was selected for each target, by pool: of pools whose routes serve several targets,
    not all of them the same."""
    tasks = tasks_of(trace)
    found = {}
    for pool in dict.fromkeys(route.pool for route in trace.routes):
        routes = [route for route in trace.routes if route.pool == pool]
        serving = {target: [route for route in routes if route.name in names] for target, names in tasks.items()}
        served = {target: each for target, each in serving.items() if each}
        if len({tuple(route.name for route in each) for each in served.values()}) > 1:
            found[pool] = {target: _use(each) for target, each in served.items()}
    return found


def _use(routes: Iterable[RouteTrace]) -> list[float]:
    """Each module's share over some routes to one pool, after the last round."""
    totals = (route.chosen[-1].reshape(-1, route.modules).sum(0, dtype=np.float64) for route in routes)
    found: list[float] = shares_of(sum(totals, np.zeros(1))).tolist()
    return found
