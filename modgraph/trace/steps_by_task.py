"""Which sub-networks each task takes at each step: those that routes of its own send from, or else to.

A route is a task's own where the outputs of no other depend on it; the outputs of one family belong to as many tasks as
it has members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from modgraph.ir import Result
from modgraph.trace.entropies import shares_of
from modgraph.trace.routes import routes_behind
from modgraph.trace.steps import GATE, Shares, StepUse, without_common
from modgraph.trace.trace import Trace


@dataclass(frozen=True)
class SubNetwork:
    """A module of a pool, and how many routes of a task have come to that pool before."""

    pool: str
    round: int
    module: int


@dataclass(frozen=True)
class TaskSteps:
    """What each task takes: `use` [sub-networks, steps] by task, `mean` [sub-networks] over all steps that are real,
    and the share of each task in what is taken of a sub-network, `shares` [sub-networks, tasks]."""

    axis: str
    of: str
    examples: dict[str, list[int]]
    sub_networks: list[SubNetwork]
    use: dict[str, Shares]
    mean: dict[str, list[float]]
    shares: Shares


def names_of(rows: Sequence[SubNetwork]) -> list[tuple[str, str]]:
    """What to call the pool of each sub-network beside the others, and which of its uses it is if not the first."""
    short = without_common(row.pool for row in rows)
    return [(short[row.pool], f", use {row.round + 1}" if row.round else "") for row in rows]


def outputs_behind(trace: Trace) -> dict[str, tuple[str, ...]]:
    """The tasks whose outputs depend on each traced route, by its name."""
    outputs: dict[str, list[Result]] = {}
    for label, result in trace.graph.outputs.items():
        outputs.setdefault(label.partition(".")[2] or label, []).append(result)
    behind = {task: routes_behind(trace.graph, results) for task, results in outputs.items()}
    return {route.name: tuple(task for task, names in behind.items() if route.name in names) for route in trace.routes}


def routes_of_tasks(trace: Trace, use: Mapping[str, StepUse]) -> dict[str, list[StepUse]]:
    """The routes with steps that are each task's own, in the order of work; none where not two tasks have any."""
    found: dict[str, list[StepUse]] = {}
    for name, tasks in outputs_behind(trace).items():
        if name in use and len(tasks) == 1:
            found.setdefault(tasks[0], []).append(use[name])
    return found if len(found) > 1 else {}


def shared_routes(trace: Trace, use: Mapping[str, StepUse]) -> dict[str, StepUse]:
    """The other routes with steps, by name."""
    own = {id(each) for routes in routes_of_tasks(trace, use).values() for each in routes}
    return {name: each for name, each in use.items() if id(each) not in own}


def steps_by_task(trace: Trace, use: Mapping[str, StepUse]) -> TaskSteps | None:
    """What each task takes, None where there are no routes of tasks."""
    routes = routes_of_tasks(trace, use)
    if not routes:
        return None
    found = {task: _numbered(each) for task, each in routes.items()}
    first = next(iter(routes.values()))[0]
    rows = list(dict.fromkeys(row for each in found.values() for row in each))
    examples = {task: max((each.examples for each in own), key=len) for task, own in routes.items()}
    none = {task: ([0.0] * len(each), 0.0) for task, each in examples.items()}
    taken = {task: [each.get(row, none[task]) for row in rows] for task, each in found.items()}
    steps = {task: [use for use, _ in each] for task, each in taken.items()}
    means = {task: [mean for _, mean in each] for task, each in taken.items()}
    shares = shares_of(np.array([*means.values()], np.float64).T).tolist()
    of = GATE if any(each.of == GATE for own in routes.values() for each in own) else first.of
    return TaskSteps(first.axis, of, examples, rows, steps, means, shares)


Numbered = dict[SubNetwork, tuple[list[float], float]]


def _numbered(routes: list[StepUse]) -> Numbered:
    """The shares of each sub-network by step, and over all, of the routes of one task."""
    seen: dict[str, int] = {}
    found: Numbered = {}
    for rows in (route.sub_networks for route in routes):
        times = seen[rows.pool] = seen.get(rows.pool, -1) + 1
        for module, (steps, mean) in enumerate(zip(rows.steps, rows.mean, strict=True)):
            found[SubNetwork(rows.pool, times, module)] = steps, mean
    return found
