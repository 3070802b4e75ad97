"""Which modules are chosen together: at one route by a token, and at two routes by the same token.

Axis letters: D decisions, one for each token; M, L modules of one route and of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.entropies import entropy_of
from modgraph.trace.paths import choices_of, successive
from modgraph.trace.routes import RouteTrace
from modgraph.trace.trace import Trace

FEW = 4  # routes that decide for the same tokens, of which all pairs are told; of more, those that follow each other


@dataclass(frozen=True)
class Coactivation:
    """How a token's modules at one route go with those at another: `joint` [M, L] sums to one.

    `mutual_information` is in nats; `normalised`, it is divided by the mean of both routes' entropies: 1 where each
    follows from the other, 0 where neither tells of the other or a route always chooses the same.
    """

    routes: tuple[str, str]
    decisions: int
    joint: list[list[float]]
    mutual_information: float
    normalised: float


def coactivations(trace: Trace) -> list[Coactivation]:
    """Of all pairs of routes that choose for the same tokens; of many, of each and the next."""
    return [_of_pair(*pair) for routes in successive(trace) for pair in _pairs(routes)]


def _pairs(routes: list[RouteTrace]) -> Iterator[tuple[RouteTrace, RouteTrace]]:
    return combinations(routes, 2) if len(routes) <= FEW else pairwise(routes)


def _of_pair(first: RouteTrace, second: RouteTrace) -> Coactivation:
    chosen_DM, chosen_DL = choices_of([first, second])
    joint_ML = joint(chosen_DM, chosen_DL)
    information, normalised = mutual_information(joint_ML)
    return Coactivation((first.name, second.name), len(chosen_DM), joint_ML.tolist(), information, normalised)


def joint(chosen_DM: NDArray[np.bool_], chosen_DL: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How often modules of two routes meet in one decision, [M, L]; a decision for several modules counts once, equal
    parts for each pair of them."""
    first_DM, second_DL = (each / np.maximum(1, each.sum(-1, keepdims=True)) for each in (chosen_DM, chosen_DL))
    found: NDArray[np.float64] = first_DM.T @ second_DL / max(1, len(chosen_DM))
    return found


def mutual_information(joint_ML: NDArray[np.float64]) -> tuple[float, float]:
    """That of a joint distribution in nats, and divided by the mean of both entropies."""
    first, second = float(entropy_of(joint_ML.sum(1))), float(entropy_of(joint_ML.sum(0)))
    information = max(0.0, first + second - float(entropy_of(joint_ML.reshape(-1))))
    mean = (first + second) / 2
    return information, min(1.0, information / mean) if min(first, second) > 0 else 0.0


def together(route: RouteTrace) -> list[list[float]] | None:
    """The share of decisions that chose both of two modules, [M, M], with that of each module on the diagonal; None of
    a route that never chooses several."""
    if not route.selects:
        return None
    (chosen_DM,) = choices_of([route])
    if not (chosen_DM.sum(-1) > 1).any():
        return None
    counts_DM = chosen_DM.astype(np.float64)
    found: list[list[float]] = (counts_DM.T @ counts_DM / len(chosen_DM)).tolist()
    return found
