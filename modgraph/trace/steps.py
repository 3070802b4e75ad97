"""Which modules are active at each step of a time axis, and which senders, where these are modules of a pool themselves
(MT-RMN, figure 4).

Axis letters: B examples, T steps, S senders, M modules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.places import places_of_tokens
from modgraph.trace.routes import RouteTrace
from modgraph.trace.trace import Trace
from modgraph.types import Axis

ACTIVE, GATE = "active", "gate"
MOST_CONNECTIONS = 256

Shares = list[list[float]]


@dataclass(frozen=True)
class Rows:
    """A row for each module of a pool: `steps` [modules, steps] is the share of examples, real at that step, in which
    it is active, or its mean gate; `mean` [modules] is that over all real steps, shown or not."""

    pool: str
    steps: Shares
    mean: list[float]


@dataclass(frozen=True)
class StepUse:
    """What a route decided at the first steps along an `axis`, `of` how many `examples` at each step.

    `modules` are those that it sends to, active where any sender's message goes there; `senders` those it sends from,
    where they are a pool's, active where any module takes their message; `connections` [senders, modules, steps] are
    the gates between them. Routers whose gates are neither zero nor one, and that choose nothing, tell mean gates.
    """

    axis: str
    of: str
    examples: list[int]
    modules: Rows
    senders: Rows | None
    connections: list[Shares] | None

    @property
    def sub_networks(self) -> Rows:
        """What is drawn on: the senders where they are modules, else the modules."""
        return self.modules if self.senders is None else self.senders


@dataclass(frozen=True)
class StepAxis:
    """The axis of steps among those of a route's gates [B, …, M], counted from 1, and its pool of senders if any."""

    axis: Axis
    at: int
    senders: str | None


def use_by_steps(trace: Trace) -> dict[str, StepUse]:
    """What each route that decides at the steps of a time axis did at the first of them, by its name."""
    found = {}
    for route, along in step_axes(trace).values():
        real_BT = _real(trace, route, along)
        if real_BT.any():
            found[route.name] = _use(route, along, real_BT, trace.steps)
    return found


def step_axes(trace: Trace) -> dict[str, tuple[RouteTrace, StepAxis]]:
    """The routes that decide at each step of a time axis: one that a scan goes along, one of any length, or one of
    fixed length that is neither a pool's nor that of the places of an image."""
    places = places_of_tokens(trace.graph)
    found = {}
    for route in trace.routes:
        axes = route.decision.senders
        senders = axes[-1].name if len(axes) > 1 and axes[-1].name in trace.graph.pools() else None
        of_image = route.node in trace.graph and trace.graph.inputs(route.node)["tokens"].node in places
        at = _steps_among(trace, route, axes)
        if at is not None and not of_image:
            found[route.name] = route, StepAxis(axes[at], at + 1, senders)
    return found


def _steps_among(trace: Trace, route: RouteTrace, axes: tuple[Axis, ...]) -> int | None:
    """Which of the axes before that of the modules is one of steps."""
    if route.node not in trace.graph:
        return 0  # what a scan stacks comes first
    padded = [at for at, axis in enumerate(axes) if axis.is_padded]
    pools = trace.graph.pools()
    fixed = [at for at, axis in enumerate(axes) if axis.name not in pools and route.gates.shape[2 + at] > 1]
    return next(reversed(padded or fixed), None)


def _real(trace: Trace, route: RouteTrace, along: StepAxis) -> NDArray[np.bool_]:
    """Which steps of each example are no padding, [B, T]."""
    examples, steps = len(trace), route.gates.shape[1 + along.at]
    lengths = trace.arrays.values.get(trace.graph.length_inputs().get(along.axis.name, ""))
    full = np.full(examples, steps) if lengths is None or not along.axis.is_padded else lengths
    real: NDArray[np.bool_] = np.arange(steps) < full[:, None]
    return real


def _use(route: RouteTrace, along: StepAxis, real_BT: NDArray[np.bool_], most: int) -> StepUse:
    values, of = _decided(route)
    values = np.moveaxis(values, along.at, 1)
    values = values if along.senders is not None else values[..., None, :]
    values_BTSM = values.reshape(*values.shape[:2], -1, *values.shape[-2:])
    over = np.max if of == ACTIVE else np.mean
    shown = min(most, int(np.flatnonzero(real_BT.any(0))[-1]) + 1)
    of_senders, of_modules = (over(values_BTSM, axis=axis).mean(2) for axis in (-1, -2))
    pairs = None
    if along.senders is not None and values_BTSM.shape[-1] * values_BTSM.shape[-2] <= MOST_CONNECTIONS:
        pairs = np.moveaxis(_by_step(values_BTSM.mean(2), real_BT)[:shown], 0, -1).tolist()
    return StepUse(
        along.axis.name or "step",
        of,
        real_BT.sum(0)[:shown].tolist(),
        _rows(route.pool, of_modules, real_BT, shown),
        None if along.senders is None else _rows(along.senders, of_senders, real_BT, shown),
        pairs,
    )


def _decided(route: RouteTrace) -> tuple[NDArray[np.float64], str]:
    """After the last round, [B, …, M]: one where a module was chosen or a gate is open, or gates of other routers."""
    last = np.asarray(route.chosen[-1], np.float64)
    opens = route.selects or bool(np.isin(last, (0, 1)).all())
    return ((last != 0).astype(np.float64), ACTIVE) if opens else (last, GATE)


def _by_step(values: NDArray[np.float64], real_BT: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean over the examples that are real at each step: [T, …] from [B, T, …]."""
    counted = np.where(real_BT.reshape(*real_BT.shape, *[1] * (values.ndim - 2)), values, 0).sum(0)
    found: NDArray[np.float64] = counted / np.maximum(1, real_BT.sum(0)).reshape(-1, *[1] * (values.ndim - 2))
    return found


def _rows(pool: str, values: NDArray[np.float64], real_BT: NDArray[np.bool_], shown: int) -> Rows:
    """Of values [B, T, modules]."""
    return Rows(pool, _by_step(values, real_BT)[:shown].T.tolist(), values[real_BT].mean(0).tolist())


def without_common(names: Iterable[str]) -> dict[str, str]:
    """Dotted names without the words that all begin with; their last word stays, and the word before a number."""
    parts = {name: name.split(".") for name in names}
    columns = zip(*(words[:-1] for words in parts.values()), strict=False)
    common = len([*itertools.takewhile(lambda column: len(set(column)) == 1, columns)]) if len(parts) > 1 else 0
    common -= any(words[common].isdecimal() for words in parts.values()) and common > 0
    return {name: ".".join(words[common:]) for name, words in parts.items()}
