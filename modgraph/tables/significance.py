"""Welch's t-test (Welch, 1947), two-sided: do two samples of unequal variance have different means?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from modgraph.extras import find_missing, require

TEST = "Welch's t-test"
LEVEL = 0.05  # from which p on a difference is not significant
FEWEST = 2  # values of a sample


def can_test() -> bool:
    """Whether the packages that tests need are installed."""
    return find_missing("tables") is None


def is_testable(sample: Sequence[float]) -> bool:
    """Whether a sample has enough values for a test."""
    return len(sample) >= FEWEST


def compute_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return p, the probability of means that differ at least so much if the true ones are equal. None where it is
    not defined: with fewer than two values of either sample, or if neither varies. Raises `ModgraphError` without
    scipy."""
    if not (is_testable(first) and is_testable(second)):
        return None
    errors = [variance(sample) / len(sample) for sample in (first, second)]
    total = sum(errors)
    if not (total > 0 and math.isfinite(total)):
        return None
    require("tables", TEST)
    from scipy.special import stdtr

    t = (fmean(first) - fmean(second)) / math.sqrt(total)
    shares, sizes = [error / total for error in errors], (len(first) - 1, len(second) - 1)
    freedom = 1 / sum(share**2 / size for share, size in zip(shares, sizes, strict=True))
    return float(2 * stdtr(freedom, -abs(t)))
