"""What routes that decide for the same tokens have to do with each other: paths through them (Kirsch et al., NeurIPS
2018, figure 2), and which of their modules are chosen together.

Axis letters: D decisions, one for each token at each route; M, L modules of one route and of another.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.trace.statistics import entropy_of
from modgraph.trace.trace import RouteTrace, Trace
from modgraph.types import Axis

MOST = 20  # paths in a summary
SHOWN = 8  # paths in a table
FEW = 4  # routes of which all pairs are summarised; of more, those that follow each other


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


def paths_of(trace: Trace) -> list[dict[str, Any]]:
    """The paths through each group of successive routes, as trace.json has them: how many there are, and of the most
    frequent the modules at each route and the share of decisions."""
    found = []
    for routes in successive(trace):
        chosen = choices_of(routes)
        rows, counts = np.unique(np.concatenate(chosen, axis=1), axis=0, return_counts=True)
        cuts = np.cumsum([route.modules for route in routes])[:-1]
        order = np.argsort(-counts, kind="stable")[:MOST]
        modules = [[np.flatnonzero(part).tolist() for part in np.split(rows[at], cuts)] for at in order]
        shares = (counts / counts.sum())[order].tolist()
        paths = [{"modules": each, "share": share} for each, share in zip(modules, shares, strict=True)]
        names = [route.name for route in routes]
        found.append({"routes": names, "decisions": len(chosen[0]), "different": len(rows), "paths": paths})
    return found


def paths_tables(trace: Trace) -> list[str]:
    """The paths to read: a text for each group of routes."""
    tables = []
    for found in paths_of(trace):
        lines = [f"paths through {', '.join(found['routes'])}: {found['different']} different"]
        for path in found["paths"][:SHOWN]:
            modules = ("+".join(map(str, each)) for each in path["modules"])
            lines.append(f"  {path['share']:6.1%}  {' → '.join(modules)}")
        tables.append("\n".join(lines))
    return tables


def coactivations(trace: Trace) -> list[dict[str, Any]]:
    """How a token's modules at one route go with those at another, as trace.json has it: of all pairs of routes that
    choose for the same tokens; of many, of each and the next."""
    found = []
    for routes in successive(trace):
        for first, second in combinations(routes, 2) if len(routes) <= FEW else pairwise(routes):
            chosen_DM, chosen_DL = choices_of([first, second])
            joint_ML = joint(chosen_DM, chosen_DL)
            information, normalised = mutual_information(joint_ML)
            told = {"routes": (first.name, second.name), "decisions": len(chosen_DM), "joint": joint_ML.tolist()}
            found.append({**told, "mutual_information": information, "normalised": normalised})
    return found


def joint(chosen_DM: NDArray[np.bool_], chosen_DL: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How often modules of two routes meet in one decision, [M, L]; a decision for several modules counts once, equal
    parts for each pair of them."""
    first_DM, second_DL = (each / np.maximum(1, each.sum(-1, keepdims=True)) for each in (chosen_DM, chosen_DL))
    found: NDArray[np.float64] = first_DM.T @ second_DL / max(1, len(chosen_DM))
    return found


def mutual_information(joint_ML: NDArray[np.float64]) -> tuple[float, float]:
    """That of a joint distribution in nats, and divided by the mean of both entropies: 1 where each route follows from
    the other, 0 where neither predicts the other or a route always chooses the same."""
    first, second = float(entropy_of(joint_ML.sum(1))), float(entropy_of(joint_ML.sum(0)))
    information = max(0.0, first + second - float(entropy_of(joint_ML.reshape(-1))))
    mean = (first + second) / 2
    return information, min(1.0, information / mean) if min(first, second) > 0 else 0.0


def together(route: RouteTrace) -> list[list[float]] | None:
    """The share of decisions that chose both of two modules, [M, M], with that of each module on the diagonal; None of
    a route that never chooses several."""
    counts_DM = choices_of([route])[0].astype(np.float64)
    if not route.selects or not (counts_DM.sum(-1) > 1).any():
        return None
    found: list[list[float]] = (counts_DM.T @ counts_DM / len(counts_DM)).tolist()
    return found
