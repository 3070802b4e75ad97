"""What a route did, in numbers: importance, load, entropies, and use of modules by group of examples.

And what routes that decide for the same tokens have to do with each other: paths through them (Kirsch et al., NeurIPS
2018, figure 2), and which of their modules are chosen together.

Axis letters: B examples, S senders that are no padding, K slots, M modules; of several routes D decisions, one for each
token at each route, and L modules of another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.declare import DISTRIBUTION
from modgraph.trace.trace import RouteTrace, Trace
from modgraph.types import Axis

LEAST_SPREAD = 0.5  # of log M: a route whose use of M modules has less entropy has collapsed
MOST_SHOWN = 8  # rounds in a table or a picture
MOST_PATHS = 20  # in a summary
FEW = 4  # routes of which all pairs are summarised; of more, those that follow each other


def senders_of(route: RouteTrace, at: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """What the senders of all examples came to in a round, padding left out: gates and how often each module was chosen
    [S, M]; what each decided, a distribution [S, M], of several slots [S, K, M].

    That is the distribution that a router chooses from where it is recorded, else the gates of a sender, scaled to sum
    to one. Padding has no gates.
    """
    gates = route.gates[at]
    real = gates.sum(-1) > 0
    logits = route.record_as(*DISTRIBUTION)
    weights = np.asarray((gates if logits is None else logits[at])[real], np.float64)
    if logits is not None:
        weights = np.exp(weights - weights.max(-1, keepdims=True))
    chosen = np.asarray(route.chosen[at][real], np.float64)
    return np.asarray(gates[real], np.float64), chosen, shares_of(weights)


def round_of(route: RouteTrace, at: int) -> dict[str, Any]:
    """Means over the senders in a round, as trace.json has them: each module's share of what was selected, or of the
    gates where a router selects nothing; the largest gate; the entropy of a decision, of several slots their mean."""
    gates_SM, chosen_SM, decided = senders_of(route, at)
    entropy = entropy_of(decided)
    entropy = entropy if entropy.ndim == 1 else entropy.mean(-1)
    largest, of_each = (float(each.mean()) if each.size else 0.0 for each in (gates_SM.max(-1), entropy))
    return {"use": shares_of(chosen_SM.sum(0)).tolist(), "largest_gate": largest, "entropy": of_each}


def statistics_of(route: RouteTrace) -> dict[str, Any]:
    """What the senders of all examples came to after the last round, as trace.json has it.

    `importance` is the sum of gates of each module, `load` how often it was chosen (of routers that choose nothing, the
    sum of gates again); both with their squared coefficient of variation over modules. `entropies` are in nats: the
    mean `of_a_decision` (H_a), that `of_the_mean` decision (H_b), and that `of_use`, of the load. `dead` are the
    modules that were never chosen.
    """
    (gates_SM, chosen_SM, decided), last = senders_of(route, -1), round_of(route, -1)
    importance_M, load_M, of_use = gates_SM.sum(0), chosen_SM.sum(0), float(entropy_of(chosen_SM.sum(0)))
    of_the_mean = float(entropy_of(decided.mean(0)).mean()) if len(decided) else 0.0
    return {
        "importance": importance_M.tolist(),
        "importance_cv2": squared_variation(importance_M),
        "load": load_M.tolist(),
        "load_cv2": squared_variation(load_M),
        "largest_gate": last["largest_gate"],
        "entropies": {"of_a_decision": last["entropy"], "of_the_mean": of_the_mean, "of_use": of_use},
        "dead": np.flatnonzero(load_M == 0).tolist(),
        "collapsed": bool(load_M.any()) and of_use < LEAST_SPREAD * math.log(route.modules),
    }


def squared_variation(values: NDArray[np.float64]) -> float:
    """Variance over squared mean: zero where all are alike."""
    shares = shares_of(values)
    return float(len(values) ** 2 * shares.var()) if shares.any() else 0.0


def shown_rounds(rounds: int) -> list[int]:
    """All rounds from 0, or of many the first, the last and some between at even steps."""
    if rounds <= MOST_SHOWN:
        return list(range(rounds))
    return [round(at * (rounds - 1) / (MOST_SHOWN - 1)) for at in range(MOST_SHOWN)]


def shares_of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights scaled to sum to one along the last axis; where all are zero, zero."""
    total = weights.sum(-1, keepdims=True)
    found: NDArray[np.float64] = weights / np.where(total > 0, total, 1)
    return found


def entropy_of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of weights along the last axis, scaled to sum to one; where all are zero, zero."""
    shares = shares_of(weights)
    found: NDArray[np.float64] = np.sum(shares * np.log(1 / np.where(shares > 0, shares, 1)), axis=-1)
    return found


def groupings_of(trace: Trace) -> dict[str, Sequence[str]]:
    """A word for each example: its true class (where several targets have one, of each by the target's name), and its
    group in each grouping of the data."""
    several = len(trace.labels) > 1
    classes = {target if several else "class": words for target, words in trace.labels.items()}
    return {**classes, **{name: words.tolist() for name, words in trace.arrays.groups.items()}}


def use_by_groups(trace: Trace, route: RouteTrace) -> dict[str, dict[str, list[float]]]:
    """What each group of each grouping used of a route's modules."""
    orders = trace.arrays.orders
    return {name: use_by_group(route, words, orders.get(name)) for name, words in groupings_of(trace).items()}


def use_by_group(route: RouteTrace, words: Sequence[str], order: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Each module's share of what the tokens of each group selected, or of their gates, after the last round; groups in
    an order, or in that of their names, numbers by their size and before words."""
    totals_BM = route.chosen[-1].reshape(len(words), -1, route.modules).sum(1, dtype=np.float64)
    column, found = np.array(words), set(words)

    def rank(word: str) -> tuple[bool, int, str]:
        number = word.isascii() and word.isdigit() and len(word) < 10
        return not number, int(word) if number else 0, word

    groups = sorted(found, key=rank) if order is None else [group for group in order if group in found]
    return {group: shares_of(totals_BM[column == group].sum(0)).tolist() for group in groups}


# ------------------------------------------------------------ several routes


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
        order = np.argsort(-counts, kind="stable")[:MOST_PATHS]
        modules = [[np.flatnonzero(part).tolist() for part in np.split(rows[at], cuts)] for at in order]
        shares = (counts / counts.sum())[order].tolist()
        paths = [{"modules": each, "share": share} for each, share in zip(modules, shares, strict=True)]
        names = [route.name for route in routes]
        found.append({"routes": names, "decisions": len(chosen[0]), "different": len(rows), "paths": paths})
    return found


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
