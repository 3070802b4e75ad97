"""How decided routers are.

Axis letters: B examples, N senders (tokens), K slots, M modules.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modgraph.declare import DISTRIBUTION
from modgraph.trace.routes import RouteTrace


def decisions(route: RouteTrace, at: int) -> NDArray[np.float64]:
    """What each sender decided after a round, [B, ..., N, M], with slots [B, ..., N, K, M]; zero in padding.

    It is the distribution that a router chooses from, or the gates, scaled to sum to one.
    """
    logits = route.record_as(*DISTRIBUTION)
    if logits is None:
        return shares_of(np.asarray(route.gates[at], np.float64))
    scores = np.asarray(logits[at], np.float64)
    return shares_of(np.exp(scores - scores.max(-1, keepdims=True)))


def entropies(route: RouteTrace, at: int) -> NDArray[np.float64]:
    """The entropy of each sender's decision after a round, in nats, [B, ..., N]; of several slots, their mean."""
    of_each = entropy_of(decisions(route, at))
    return of_each if of_each.ndim < route.gates.ndim - 1 else of_each.mean(-1)


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
