"""Statistics of a route: importance, load, entropies, and use of modules by group of examples.

And of several routes that decide for the same tokens: paths through them (Kirsch et al., NeurIPS 2018, figure 2), and
the joint distribution of their choices.

Axis letters: B examples, S tokens without padding, K slots, M modules; of several routes D decisions, one for each
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

LEAST_SPREAD = 0.5  # share of log M: a route has collapsed if the entropy of its use is less
MAX_ROUNDS = 8  # in a table or a picture
MOST_PATHS = 20  # in a summary
FEW = 4  # the most routes whose pairs are all summarised; of more, successive pairs


def gather_tokens(route: RouteTrace, at: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return gates [S, M], choices [S, M] and distributions [S, M] or [S, K, M] of all tokens in a round, without
    padding.

    The distribution is what the router records as such, else the gates of a token scaled to sum to one. Padding has no
    gates.
    """
    gates = route.gates[at]
    mask = gates.sum(-1) > 0
    logits = route.record_as(*DISTRIBUTION)
    weights = np.asarray((gates if logits is None else logits[at])[mask], np.float64)
    if logits is not None:
        weights = np.exp(weights - weights.max(-1, keepdims=True))
    choice = np.asarray(route.choice[at][mask], np.float64)
    return np.asarray(gates[mask], np.float64), choice, compute_shares(weights)


def round_of(route: RouteTrace, at: int) -> dict[str, Any]:
    """Return means over the tokens in a round, as in trace.json: each module's share of the choices, or of the gates
    where a router makes no choice; the largest gate; the entropy of a decision in nats, averaged over slots; the
    modules of a token."""
    gates_SM, choice_SM, distribution = gather_tokens(route, at)
    entropy = compute_entropy(distribution)
    entropy = entropy if entropy.ndim == 1 else entropy.mean(-1)
    largest, of_each = (float(each.mean()) if each.size else 0.0 for each in (gates_SM.max(-1), entropy))
    use = compute_shares(choice_SM.sum(0)).tolist()
    return {"use": use, "largest_gate": largest, "entropy": of_each, "modules_per_token": count_modules(route, at)}


def count_modules(route: RouteTrace, at: int) -> float | None:
    """Return the mean number of modules that a token goes to in a round; None where a router makes no choice.

    A token of an axis of any length that goes to no module counts as padding.
    """
    if not route.has_choice:
        return None
    counts = np.count_nonzero(route.choice[at], axis=-1)
    padded = any(axis.is_padded for axis in route.decision.token_axes)
    counted = counts[route.gates[at].sum(-1) > 0] if padded else counts
    return float(counted.mean()) if counted.size else 0.0


def compute_statistics(route: RouteTrace) -> dict[str, Any]:
    """Return the statistics of all tokens after the last round, as in trace.json.

    `importance` is the sum of gates of each module, `load` how often it was chosen (the sum of gates again where a
    router makes no choice); both with their squared coefficient of variation over modules. `entropies` are in nats: the
    mean `of_a_decision` (H_a), that `of_the_mean` decision (H_b), and that `of_use`, of the load. `dead` are the
    modules that were never chosen.
    """
    (gates_SM, choice_SM, distribution), last = gather_tokens(route, -1), round_of(route, -1)
    importance_M, load_M, of_use = gates_SM.sum(0), choice_SM.sum(0), float(compute_entropy(choice_SM.sum(0)))
    of_the_mean = float(compute_entropy(distribution.mean(0)).mean()) if len(distribution) else 0.0
    return {
        "importance": importance_M.tolist(),
        "importance_cv2": compute_cv2(importance_M),
        "load": load_M.tolist(),
        "load_cv2": compute_cv2(load_M),
        "largest_gate": last["largest_gate"],
        "modules_per_token": last["modules_per_token"],
        "entropies": {"of_a_decision": last["entropy"], "of_the_mean": of_the_mean, "of_use": of_use},
        "dead": np.flatnonzero(load_M == 0).tolist(),
        "collapsed": bool(load_M.any()) and of_use < LEAST_SPREAD * math.log(route.modules),
    }


def compute_cv2(values: NDArray[np.float64]) -> float:
    """Return the squared coefficient of variation, variance over squared mean; zero where all values are equal."""
    shares = compute_shares(values)
    return float(len(values) ** 2 * shares.var()) if shares.any() else 0.0


def pick_rounds(rounds: int) -> list[int]:
    """Return all rounds from 0, or of many rounds the first, the last and some between at even steps."""
    if rounds <= MAX_ROUNDS:
        return list(range(rounds))
    return [round(at * (rounds - 1) / (MAX_ROUNDS - 1)) for at in range(MAX_ROUNDS)]


def compute_shares(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale weights to sum to one along the last axis; zeros stay zeros."""
    total = weights.sum(-1, keepdims=True)
    found: NDArray[np.float64] = weights / np.where(total > 0, total, 1)
    return found


def compute_entropy(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy in nats of weights along the last axis, scaled to sum to one; zero where all are zero."""
    shares = compute_shares(weights)
    found: NDArray[np.float64] = np.sum(shares * np.log(1 / np.where(shares > 0, shares, 1)), axis=-1)
    return found


def find_groupings(trace: Trace) -> dict[str, Sequence[str]]:
    """Return a word for each example by grouping: its true class (by the target's name if there are several), and its
    group in each grouping of the data."""
    several = len(trace.labels) > 1
    classes = {target if several else "class": words for target, words in trace.labels.items()}
    return {**classes, **{name: words.tolist() for name, words in trace.arrays.groups.items()}}


def use_by_groups(trace: Trace, route: RouteTrace) -> dict[str, dict[str, list[float]]]:
    """Return each module's share in each group of each grouping."""
    orders = trace.arrays.orders
    return {name: use_by_group(route, words, orders.get(name)) for name, words in find_groupings(trace).items()}


def use_by_group(route: RouteTrace, words: Sequence[str], order: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Return each module's share of the choices of each group's tokens after the last round, or of their gates. Groups
    come in the given order, else sorted by name, numbers first and by size."""
    totals_BM = route.choice[-1].reshape(len(words), -1, route.modules).sum(1, dtype=np.float64)
    column, found = np.array(words), set(words)

    def rank(word: str) -> tuple[bool, int, str]:
        number = word.isascii() and word.isdigit() and len(word) < 10
        return not number, int(word) if number else 0, word

    groups = sorted(found, key=rank) if order is None else [group for group in order if group in found]
    return {group: compute_shares(totals_BM[column == group].sum(0)).tolist() for group in groups}


# ------------------------------------------------------------ several routes


def successive(trace: Trace) -> list[list[RouteTrace]]:
    """Return groups of two or more routes that make choices for the same tokens, in the order of computation."""
    found: dict[tuple[Axis, ...], list[RouteTrace]] = {}
    for route in trace.routes:
        if route.has_choice:
            found.setdefault(route.decision.token_axes, []).append(route)
    return [routes for routes in found.values() if len(routes) > 1]


def choices_of(routes: list[RouteTrace]) -> list[NDArray[np.bool_]]:
    """Return the choice of each route after its last round, [D, M], without padding."""
    choice = [route.choice[-1].reshape(-1, route.modules) > 0 for route in routes]
    mask_D = np.all([each.any(-1) for each in choice], axis=0)
    return [each[mask_D] for each in choice]


def find_paths(trace: Trace) -> list[dict[str, Any]]:
    """Return the paths through each group of successive routes, as in trace.json: their number, and of the most
    frequent the modules at each route and the share of decisions."""
    found = []
    for routes in successive(trace):
        choice = choices_of(routes)
        rows, counts = np.unique(np.concatenate(choice, axis=1), axis=0, return_counts=True)
        cuts = np.cumsum([route.modules for route in routes])[:-1]
        order = np.argsort(-counts, kind="stable")[:MOST_PATHS]
        modules = [[np.flatnonzero(part).tolist() for part in np.split(rows[at], cuts)] for at in order]
        shares = (counts / counts.sum())[order].tolist()
        paths = [{"modules": each, "share": share} for each, share in zip(modules, shares, strict=True)]
        names = [route.name for route in routes]
        common = {"routes": names, "decisions": len(choice[0]), "different": len(rows), "paths": paths}
        found.append(common | flows_of(choice))
    return found


def flows_of(choice: Sequence[NDArray[np.bool_]]) -> dict[str, Any]:
    """Return the share of decisions for each module of each route, and for each pair of modules of neighbours."""
    decisions, numbers = max(1, len(choice[0])), [each.astype(np.float64) for each in choice]
    flows = [(before.T @ behind / decisions).tolist() for before, behind in pairwise(numbers)]
    return {"shares": [(each.sum(0) / decisions).tolist() for each in numbers], "flows": flows}


def compute_coactivations(trace: Trace) -> list[dict[str, Any]]:
    """Return how a token's modules at one route go with those at another, as in trace.json: for all pairs of routes
    that choose for the same tokens; of many routes, for each and the next."""
    found = []
    for routes in successive(trace):
        for first, second in combinations(routes, 2) if len(routes) <= FEW else pairwise(routes):
            choice_DM, choice_DL = choices_of([first, second])
            joint_ML = joint(choice_DM, choice_DL)
            information, normalised = mutual_information(joint_ML)
            common = {"routes": (first.name, second.name), "decisions": len(choice_DM), "joint": joint_ML.tolist()}
            found.append({**common, "mutual_information": information, "normalised": normalised})
    return found


def joint(choice_DM: NDArray[np.bool_], choice_DL: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how often modules of two routes occur in one decision, [M, L]. A decision for several modules counts once,
    in equal parts for each pair of them."""
    first_DM, second_DL = (each / np.maximum(1, each.sum(-1, keepdims=True)) for each in (choice_DM, choice_DL))
    found: NDArray[np.float64] = first_DM.T @ second_DL / max(1, len(choice_DM))
    return found


def mutual_information(joint_ML: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mutual information of a joint distribution in nats, and divided by the mean of both entropies: 1 where
    each route follows from the other, 0 where neither predicts the other or a route always chooses the same."""
    first, second = float(compute_entropy(joint_ML.sum(1))), float(compute_entropy(joint_ML.sum(0)))
    information = max(0.0, first + second - float(compute_entropy(joint_ML.reshape(-1))))
    mean = (first + second) / 2
    return information, min(1.0, information / mean) if min(first, second) > 0 else 0.0


def pair_shares(route: RouteTrace) -> list[list[float]] | None:
    """Return the share of decisions that chose both of two modules, [M, M], with that of each module on the diagonal;
    None for a route that never chooses several."""
    counts_DM = choices_of([route])[0].astype(np.float64)
    if not route.has_choice or not (counts_DM.sum(-1) > 1).any():
        return None
    found: list[list[float]] = (counts_DM.T @ counts_DM / len(counts_DM)).tolist()
    return found
