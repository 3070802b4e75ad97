"""Labels that count: those that are there and are not ignored."""

from __future__ import annotations

from torch import Tensor


def labelled(target: Tensor, ignore: int | None = None, missing: bool = False) -> Tensor | None:
    """Which places of a target [B, ...] hold a label that counts; None where all do.

    A class that is missing is negative, a number that is missing is not a number.
    """
    if target.is_floating_point():
        return ~target.isnan() if missing else None
    counts = target >= 0 if missing else None
    if ignore is None:
        return counts
    others = target != ignore
    return others if counts is None else counts & others


def both(some: Tensor | None, others: Tensor | None) -> Tensor | None:
    """What is true in two masks that broadcast against each other; None is true everywhere."""
    if some is None or others is None:
        return others if some is None else some
    return some & others
