"""GMoE's routing written down once more, in numpy, token by token and without sharing a line with the program.

S tokens, E experts, D width of a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, erf, exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Decision:
    """What is decided for S tokens, each array [S, E]."""

    gates: Array
    kept: Array
    load: Array
    probabilities: Array


def cosine_logits(x: Array, W: Array, b: Array, keys: Array, s: float) -> Array:
    """P = W x + b and the columns of E on the unit sphere; products times exp(min(s, log 100))."""
    found = np.zeros((len(x), keys.shape[1]))
    for token, expert in np.ndindex(*found.shape):
        query, key = W @ x[token] + b, keys[:, expert]
        found[token, expert] = query @ key / sqrt(query @ query) / sqrt(key @ key) * exp(min(s, log(100)))
    return found


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


def cdf(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


def decide(
    logits: Array, noise: Array, sigma: float, k: int, estimator: str, capacity: float = 0.0, priority: str = "score"
) -> Decision:
    """`noise` holds what is added to the logits; `sigma` is its standard deviation."""
    S, E = logits.shape
    noisy = logits + noise
    gates, kept, load = np.zeros((S, E)), np.zeros((S, E)), np.zeros((S, E))
    for t in range(S):
        ranked = sorted(range(E), key=lambda e: (-noisy[t, e], e))
        share = softmax(noisy[t])
        total = sum(share[e] for e in ranked[:k])
        for e in ranked[:k]:
            kept[t, e] = 1
            gates[t, e] = share[e] if k == 1 else share[e] / total
        for e in range(E):
            eta = noisy[t, ranked[k - 1]]
            if estimator == "paper":
                load[t, e] = 1 - cdf((eta - logits[t, e]) / sigma)
            elif estimator == "code":
                load[t, e] = cdf((softmax(logits[t])[e] - eta) / sigma)
            elif k == E:
                load[t, e] = 1
            else:
                others = sorted((noisy[t, other] for other in range(E) if other != e), reverse=True)
                load[t, e] = cdf((logits[t, e] - others[k - 1]) / sigma)
    if capacity:
        places = k * int(capacity * ceil(S / E))
        shares = [softmax(row) for row in noisy]
        for t, e in dropped(shares, k, places, priority):
            kept[t, e] = gates[t, e] = 0
    return Decision(gates, kept, load, np.array([softmax(row) for row in logits]))


def dropped(shares: Sequence[Array], k: int, places: int, priority: str) -> Iterator[tuple[int, int]]:
    """The tokens that find no place with an expert they chose.

    By `score` an expert serves those that score it best; by `first_choice` all tokens in a row, the most decided first,
    ask for their first expert, then all in the same row for their second.
    """
    choices = [sorted(range(len(share)), key=lambda e: (-share[e], e))[:k] for share in shares]
    if priority == "score":
        for e in range(len(shares[0])):
            waiting = [t for t, choice in enumerate(choices) if e in choice]
            for t in sorted(waiting, key=lambda t: (-shares[t][e], t))[places:]:
                yield t, e
        return
    free = {e: places for e in range(len(shares[0]))}
    row = sorted(range(len(shares)), key=lambda t: (-max(shares[t]), t))
    for asked, t in product(range(k), row):
        e = choices[t][asked]
        if free[e] == 0:
            yield t, e
        free[e] = max(0, free[e] - 1)


def squared_cv(x: Array) -> float:
    """Variance (of E − 1 degrees) over squared mean; 0 of one expert."""
    if len(x) == 1:
        return 0.0
    mean = sum(x) / len(x)
    return float(sum((each - mean) ** 2 for each in x) / (len(x) - 1) / mean**2)
