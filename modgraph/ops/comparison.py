"""What a loss that compares a prediction with a target implies: what is measured, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """Something measured of a prediction and a target, by the name that its metric has."""

    name: str
    larger_is_better: bool = False


ACCURACY = Measure("accuracy", larger_is_better=True)  # of logits over classes, and a label
PERPLEXITY = Measure("perplexity")  # of logits and several labels an example, by an op that is their cross-entropy
SQUARED_ERROR = Measure("mse")  # of numbers


@dataclass(frozen=True)
class Comparison:
    """Which operands of an op are the prediction and the target, and what is measured of them.

    `ignore`, `class_weights` and `since` name the settings that say which label does not count, how much each class
    does, and which is the first that has a share, `missing` that which says whether a label may be missing, of an op
    that has them.
    """

    prediction: str
    target: str
    measures: tuple[Measure, ...]
    ignore: str | None = None
    class_weights: str | None = None
    since: str | None = None
    missing: str | None = None
