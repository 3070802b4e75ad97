"""GMoE's routing written down once more, in numpy, token by token and without sharing a line with the program.

S tokens, E experts, D width of a token.
"""

from __future__ import annotations

from dataclasses import dataclass
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


def decide(logits: Array, noise: Array, sigma: float, k: int, form: str, capacity: float = 0.0) -> Decision:
    """`noise` holds what is added to the logits; `sigma` is its standard deviation."""
    S, E = logits.shape
    noisy = logits + noise
    gates, kept, load = np.zeros((S, E)), np.zeros((S, E)), np.zeros((S, E))
    for t in range(S):
        ranked = sorted(range(E), key=lambda e: (-noisy[t, e], e))
        share = softmax(noisy[t])
        of_chosen = sum(share[e] for e in ranked[:k])
        for e in ranked[:k]:
            kept[t, e] = 1
            gates[t, e] = share[e] if k == 1 else share[e] / of_chosen
        for e in range(E):
            eta = noisy[t, ranked[k - 1]]
            if form == "paper":
                load[t, e] = 1 - cdf((eta - logits[t, e]) / sigma)
            elif form == "code":
                load[t, e] = cdf((softmax(logits[t])[e] - eta) / sigma)
            elif k == E:
                load[t, e] = 1
            else:
                others = sorted((noisy[t, other] for other in range(E) if other != e), reverse=True)
                load[t, e] = cdf((logits[t, e] - others[k - 1]) / sigma)
    if capacity:
        places = k * int(capacity * ceil(S / E))
        for e in range(E):
            waiting = sorted((t for t in range(S) if kept[t, e]), key=lambda t: (-softmax(noisy[t])[e], t))
            for t in waiting[places:]:
                kept[t, e] = gates[t, e] = 0
    return Decision(gates, kept, load, np.array([softmax(row) for row in logits]))


def squared_cv(x: Array) -> float:
    """Variance (of E − 1 degrees) over squared mean; 0 of one expert."""
    if len(x) == 1:
        return 0.0
    mean = sum(x) / len(x)
    return float(sum((each - mean) ** 2 for each in x) / (len(x) - 1) / mean**2)
