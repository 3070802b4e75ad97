"""Which modules are chosen at each position of an example (the place on an image, the token, the step of a time axis),
and which are active at the steps, of senders too where these are modules of a pool themselves (MT-RMN, figure 4).

Axis letters: B examples, T steps, S senders, M modules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.places import Places, places_of_tokens
from modgraph.trace.routes import RouteTrace
from modgraph.trace.statistics import shares_of
from modgraph.trace.trace import Trace

ACTIVE, GATE = "active", "gate"
MOST_CONNECTIONS = 256

Shares = list[list[float]]


@dataclass(frozen=True)
class StepAxis:
    """Which axis of a route's gates [B, …, M] is that of steps, and the pool of its senders if any."""

    at: int
    senders: str | None


def places_of_routes(trace: Trace) -> dict[str, Places]:
    """Where the tokens of each route lie on an image, by its name; those inside a scan are of one step."""
    known, found = places_of_tokens(trace.graph), {}
    for route in trace.routes:
        if route.node in trace.graph and (tokens := trace.graph.inputs(route.node)["tokens"].node) in known:
            found[route.name] = known[tokens]
    return found


def step_axes(trace: Trace) -> dict[str, StepAxis]:
    """Of the routes that decide at each step of a time axis: one that a scan goes along, one of any length, or one of
    fixed length that is neither a pool's nor that of the places of an image."""
    places, pools, found = places_of_routes(trace), trace.graph.pools(), {}
    for route in trace.routes:
        axes = route.decision.senders
        padded = [at for at, axis in enumerate(axes, start=1) if axis.is_padded]
        fixed = [
            at for at, axis in enumerate(axes, start=1) if axis.name not in pools and route.gates.shape[1 + at] > 1
        ]
        steps = (padded or fixed)[-1:] if route.node in trace.graph else [1]  # what a scan stacks comes first
        if steps and route.name not in places:
            senders = axes[-1].name if len(axes) > 1 and axes[-1].name in pools else None
            found[route.name] = StepAxis(steps[0], senders)
    return found


# ------------------------------------------------------------ positions


def positions_of(trace: Trace) -> dict[str, dict[str, Any]]:
    """Each module's share of what each position selected, or of its gates, as trace.json has it, of each route that
    decides more than once for an example; zero where no example has such a position.

    Positions are the steps of a scan or of senders that are a pool's, or else the senders; where there is one alone,
    the last axis before it that is longer. Of places on an image [rows, columns], some tokens `in_front` come first.
    """
    known, steps, found = places_of_routes(trace), step_axes(trace), {}
    for route in trace.routes:
        chosen, along, places = route.chosen[-1], steps.get(route.name), known.get(route.name)
        if by_step := along is not None and (route.node not in trace.graph or along.senders is not None):
            axis = along.at
        else:
            axis = next((at for at in range(chosen.ndim - 2, 0, -1) if chosen.shape[at] > 1), chosen.ndim - 2)
        if chosen.shape[axis] > 1:
            by_position = np.moveaxis(chosen, axis, 0).reshape(chosen.shape[axis], -1, route.modules)
            use = shares_of(by_position.sum(1, dtype=np.float64)).tolist()
            of, image = "step" if by_step else "token", {"rows": None, "columns": None, "in_front": 0}
            if not by_step and places is not None and places.tokens == len(use):
                of, image = "place", {"rows": places.rows, "columns": places.columns, "in_front": places.in_front}
            found[route.name] = {"of": of, "use": use, **image}
    return found


# ------------------------------------------------------------ steps


StepUse = dict[str, Any]  # what a route decided at the steps of an axis, as trace.json has it


def use_by_steps(trace: Trace) -> dict[str, StepUse]:
    """What each route that decides at the steps of a time axis did at the first of them, by its name, padding left out.

    `modules` are those that it sends to, active where any sender's message goes there; `senders` those it sends from,
    where they are a pool's, active where any module takes their message; of both `steps` [modules, steps] is the share
    of examples, or the mean gate, and `mean` [modules] that over all steps, shown or not. `connections` [senders,
    modules, steps] are the gates between them. Routers whose gates are neither zero nor one, and that choose nothing,
    have mean gates.
    """
    along = step_axes(trace)
    found = {route.name: _use(trace, route, along[route.name]) for route in trace.routes if route.name in along}
    return {name: use for name, use in found.items() if use is not None}


def _use(trace: Trace, route: RouteTrace, along: StepAxis) -> StepUse | None:
    """What a route decided after its last round, padding left out; None if there is nothing else."""
    axis, steps = route.decision.senders[along.at - 1], route.gates.shape[1 + along.at]
    lengths = trace.arrays.values.get(trace.graph.length_inputs().get(axis.name, "")) if axis.is_padded else None
    real_BT = np.arange(steps) < (np.full(len(trace), steps) if lengths is None else lengths)[:, None]
    if not real_BT.any():
        return None
    shown = min(trace.steps, int(np.flatnonzero(real_BT.any(0))[-1]) + 1)
    last = np.asarray(route.chosen[-1], np.float64)
    opens = route.selects or bool(np.isin(last, (0, 1)).all())
    values = np.moveaxis((last != 0).astype(np.float64) if opens else last, along.at, 1)
    values = values if along.senders is not None else values[..., None, :]
    values_BTSM = values.reshape(*values.shape[:2], -1, *values.shape[-2:])
    over = np.max if opens else np.mean

    def by_step(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean over the examples that are real at each step, [shown, …] from [B, T, …]."""
        ones = [1] * (values.ndim - 2)
        sums = np.where(real_BT.reshape(*real_BT.shape, *ones), values, 0).sum(0)
        found: NDArray[np.float64] = sums / np.maximum(1, real_BT.sum(0)).reshape(-1, *ones)
        return found[:shown]

    def rows(pool: str, axis: int) -> dict[str, Any]:
        values = over(values_BTSM, axis=axis).mean(2)
        return {"pool": pool, "steps": by_step(values).T.tolist(), "mean": values[real_BT].mean(0).tolist()}

    few = along.senders is not None and values_BTSM.shape[-1] * values_BTSM.shape[-2] <= MOST_CONNECTIONS
    return {
        "axis": axis.name or "step",
        "of": ACTIVE if opens else GATE,
        "examples": real_BT.sum(0)[:shown].tolist(),
        "modules": rows(route.pool, -2),
        "senders": None if along.senders is None else rows(along.senders, -1),
        "connections": np.moveaxis(by_step(values_BTSM.mean(2)), 0, -1).tolist() if few else None,
    }


def without_common(names: Iterable[str]) -> dict[str, str]:
    """Dotted names without the words that all begin with; their last word stays, and the word before a number."""
    parts = {name: name.split(".") for name in names}
    columns = zip(*(words[:-1] for words in parts.values()), strict=False)
    common = len([*itertools.takewhile(lambda column: len(set(column)) == 1, columns)]) if len(parts) > 1 else 0
    common -= any(words[common].isdecimal() for words in parts.values()) and common > 0
    return {name: ".".join(words[common:]) for name, words in parts.items()}
