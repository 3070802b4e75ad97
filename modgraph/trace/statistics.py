"""Statistics of a route after its last round: importance, load and entropies, and what they say is wrong.

Axis letters: S senders that are no padding, M modules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.entropies import decisions, entropies, entropy_of, shares_of
from modgraph.trace.routes import RouteTrace

LEAST_SPREAD = 0.5  # of log M: a route whose use of M modules has less entropy has collapsed


@dataclass(frozen=True)
class Entropies:
    """In nats: the mean entropy of a decision (H_a), that of the mean decision (H_b), and that of the use of modules.

    A decision is the distribution that a router chooses from where it is recorded, else the gates of a sender, scaled
    to sum to one.
    """

    of_a_decision: float
    of_the_mean: float
    of_use: float


@dataclass(frozen=True)
class RouteStatistics:
    """What the senders of all examples came to, padding left out.

    `importance` is the sum of gates of each module, `load` how often it was chosen (of routers that choose nothing, the
    sum of gates again); both with their squared coefficient of variation over modules. `dead` are the modules that were
    never chosen.
    """

    importance: list[float]
    importance_cv2: float
    load: list[float]
    load_cv2: float
    largest_gate: float
    entropies: Entropies
    dead: list[int]
    collapsed: bool


def statistics_of(route: RouteTrace) -> RouteStatistics:
    """The statistics of a route."""
    real = real_senders(route, -1)
    gates_SM, load_SM = (np.asarray(each[-1][real], np.float64) for each in (route.gates, route.chosen))
    load_M = load_SM.sum(0)
    of_use = float(entropy_of(load_M))
    return RouteStatistics(
        importance=gates_SM.sum(0).tolist(),
        importance_cv2=squared_variation(gates_SM.sum(0)),
        load=load_M.tolist(),
        load_cv2=squared_variation(load_M),
        largest_gate=float(gates_SM.max(-1).mean()) if len(gates_SM) else 0.0,
        entropies=Entropies(mean_of(entropies(route, -1)[real]), _of_mean(route), of_use),
        dead=np.flatnonzero(load_M == 0).tolist(),
        collapsed=bool(load_M.any()) and of_use < LEAST_SPREAD * math.log(route.modules),
    )


def real_senders(route: RouteTrace, at: int) -> NDArray[np.bool_]:
    """Which senders sent anything in a round, [B, ..., N]: padding has no gates."""
    real: NDArray[np.bool_] = route.gates[at].sum(-1) > 0
    return real


def mean_of(values: NDArray[np.float64]) -> float:
    """Their mean, zero of none."""
    return float(values.mean()) if values.size else 0.0


def squared_variation(values: NDArray[np.float64]) -> float:
    """Variance over squared mean: zero where all are alike."""
    shares = shares_of(values)
    return float(len(values) ** 2 * shares.var()) if shares.any() else 0.0


def _of_mean(route: RouteTrace) -> float:
    """The entropy of the mean decision of each slot, averaged over slots."""
    decided = decisions(route, -1)[real_senders(route, -1)]
    return float(entropy_of(decided.mean(0)).mean()) if len(decided) else 0.0
