"""How decided routers are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modgraph.declare import DISTRIBUTION
from modgraph.trace.record import RouteTrace


def entropies(route: RouteTrace, at: int) -> NDArray[np.float64]:
    """The entropy of each sender's decision after a round, in nats, [B, ..., N]; of several slots, their mean.

    It is that of the distribution that a router chooses from, or of the gates, scaled to sum to one.
    """
    logits = route.recorded(*DISTRIBUTION)
    if logits is None:
        return _entropy(np.asarray(route.gates[at], np.float64))
    scores = np.asarray(logits[at], np.float64)
    of_each = _entropy(np.exp(scores - scores.max(-1, keepdims=True)))
    return of_each if of_each.ndim < route.gates.ndim - 1 else of_each.mean(-1)


def _entropy(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of weights along the last axis, scaled to sum to one; where all are zero, zero."""
    total = weights.sum(-1, keepdims=True)
    shares = weights / np.where(total > 0, total, 1)
    found: NDArray[np.float64] = np.sum(shares * np.log(1 / np.where(shares > 0, shares, 1)), axis=-1)
    return found
