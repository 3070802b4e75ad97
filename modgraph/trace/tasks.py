"""Which modules each task is served by, where a model has several targets, and which it takes at each step.

A route serves a task where what is compared with the task's target depends on the route. It is a task's own where the
outputs of no other depend on it; the outputs of one family belong to as many tasks as it has members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modgraph.ir import Result
from modgraph.trace.routes import routes_behind
from modgraph.trace.statistics import shares_of
from modgraph.trace.steps import ACTIVE, GATE, StepUse, without_common
from modgraph.trace.trace import Trace


def tasks_of(trace: Trace) -> dict[str, tuple[str, ...]]:
    """The traced routes that serve each target; none where there are not several targets."""
    if len(trace.predictions) < 2:
        return {}
    behind = {target: routes_behind(trace.graph, [result]) for target, result in trace.predictions.items()}
    names = [route.name for route in trace.routes]
    return {target: tuple(name for name in names if name in serving) for target, serving in behind.items()}


def use_by_task(trace: Trace) -> dict[str, dict[str, list[float]]]:
    """Each module's share of what was selected for each target after the last round, by pool: of pools whose routes
    serve several targets, not all of them the same."""
    tasks, found = tasks_of(trace), {}
    for pool in dict.fromkeys(route.pool for route in trace.routes):
        chosen_M = {
            route.name: route.chosen[-1].reshape(-1, route.modules).sum(0, dtype=np.float64)
            for route in trace.routes
            if route.pool == pool
        }
        serving = {target: [name for name in names if name in chosen_M] for target, names in tasks.items()}
        served = {target: names for target, names in serving.items() if names}
        if len({tuple(names) for names in served.values()}) > 1:
            totals = {target: sum((chosen_M[name] for name in names), np.zeros(1)) for target, names in served.items()}
            found[pool] = {target: shares_of(total).tolist() for target, total in totals.items()}
    return found


# ------------------------------------------------------------ steps


SubNetwork = tuple[str, int, int]  # a pool, how many routes of a task came to it before, and one of its modules


def outputs_behind(trace: Trace) -> dict[str, tuple[str, ...]]:
    """The tasks whose outputs depend on each traced route, by its name."""
    outputs: dict[str, list[Result]] = {}
    for label, result in trace.graph.outputs.items():
        outputs.setdefault(label.partition(".")[2] or label, []).append(result)
    behind = {task: routes_behind(trace.graph, results) for task, results in outputs.items()}
    return {route.name: tuple(task for task, names in behind.items() if route.name in names) for route in trace.routes}


def steps_by_task(trace: Trace, use: Mapping[str, StepUse]) -> tuple[StepUse | None, dict[str, StepUse]]:
    """What each task takes by routes of its own, as trace.json has it, None where not two tasks have any; and the other
    routes, by name.

    Of what is taken, sub-networks, `use` [sub-networks, steps] is by task, `mean` [sub-networks] over all steps that
    are real, and `shares` [sub-networks, tasks] those of the tasks.
    """
    own: dict[str, list[StepUse]] = {}
    shared = dict(use)
    for name, tasks in outputs_behind(trace).items():
        if name in use and len(tasks) == 1:
            own.setdefault(tasks[0], []).append(shared.pop(name))
    if len(own) < 2:
        return None, dict(use)
    taken = {task: _numbered(routes) for task, routes in own.items()}
    rows = list(dict.fromkeys(row for each in taken.values() for row in each))
    examples = {task: max((each["examples"] for each in routes), key=len) for task, routes in own.items()}
    none = {task: ([0.0] * len(each), 0.0) for task, each in examples.items()}
    means = {task: [each.get(row, none[task])[1] for row in rows] for task, each in taken.items()}
    every = [each for routes in own.values() for each in routes]
    return {
        "axis": every[0]["axis"],
        "of": GATE if any(each["of"] == GATE for each in every) else ACTIVE,
        "examples": examples,
        "sub_networks": [{"pool": pool, "round": time, "module": module} for pool, time, module in rows],
        "use": {task: [each.get(row, none[task])[0] for row in rows] for task, each in taken.items()},
        "mean": means,
        "shares": shares_of(np.array([*means.values()], np.float64).T).tolist(),
    }, shared


def _numbered(routes: list[StepUse]) -> dict[SubNetwork, tuple[list[float], float]]:
    """The shares of each sub-network by step, and over all, of the routes of one task: senders where they are modules,
    else the modules that it sends to."""
    seen: dict[str, int] = {}
    found = {}
    for rows in (route["senders"] or route["modules"] for route in routes):
        pool = rows["pool"]
        seen[pool] = seen.get(pool, -1) + 1
        for module, share in enumerate(zip(rows["steps"], rows["mean"], strict=True)):
            found[pool, seen[pool], module] = share
    return found


def names_of(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What to call the pool of each sub-network beside the others, and which of its uses it is if not the first."""
    short = without_common(row["pool"] for row in rows)
    return [(short[row["pool"]], f", use {row['round'] + 1}" if row["round"] else "") for row in rows]
