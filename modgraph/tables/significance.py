"""Two-sided t-tests: Welch's (1947), whether two samples of unequal variance have different means; and Student's (1908)
of pairs, whether the mean of their differences is zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from modgraph.extras import find_missing, require

TEST = "Welch's t-test"
PAIRED = "paired t-test"
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


def compute_paired_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return p of the differences of pairs. None with fewer than two pairs, or if all differences are equal. Raises
    `ModgraphError` without scipy."""
    differences = [new - old for old, new in zip(first, second, strict=True)]
    error = variance(differences) / len(differences) if is_testable(differences) else 0.0
    if not (error > 0 and math.isfinite(error)):
        return None
    require("tables", PAIRED)
    from scipy.special import stdtr

    return float(2 * stdtr(len(differences) - 1, -abs(fmean(differences)) / math.sqrt(error)))
