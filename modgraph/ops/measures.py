"""What metrics measure, and which values of them are better. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A quantity that a metric measures of a prediction and a target, under the metric's name."""

    name: str
    larger_is_better: bool = False


ACCURACY = Measure("accuracy", larger_is_better=True)  # of logits over classes and a label
PERPLEXITY = Measure("perplexity")  # of logits and several labels per example, by an op that is their cross-entropy
BITS_PER_CHARACTER = Measure("bits_per_character")  # of the text of the labels
SQUARED_ERROR = Measure("mse")  # of numbers
ABSOLUTE_ERROR = Measure("mae")
F1 = Measure("f1", larger_is_better=True)  # of each class, averaged
AUC = Measure("auc", larger_is_better=True)  # of the receiver operating characteristic
DETERMINATION = Measure("r2", larger_is_better=True)

MEASURES = (ACCURACY, BITS_PER_CHARACTER, PERPLEXITY, SQUARED_ERROR, ABSOLUTE_ERROR, F1, AUC, DETERMINATION)
OF_TASKS = (
    Measure("average_accuracy", larger_is_better=True),
    Measure("last_accuracy", larger_is_better=True),
    Measure("task_incremental_accuracy", larger_is_better=True),
    Measure("forgetting"),
)  # results of a continual training
LOSS, TOTAL = "loss", "total_loss"  # the first name of a loss, and the name of their sum


def is_larger_better(metric: str) -> bool | None:
    """Whether a metric of a run improves as it grows, by its dotted name: `test.accuracy`. None for what is neither
    better nor worse, such as the entropies of controllers and numbers of steps."""
    names = metric.split(".")
    known = {each.name: each.larger_is_better for each in (*MEASURES, *OF_TASKS)}
    is_loss = LOSS in names or names[-1] == TOTAL
    return known.get(names[-1], False if is_loss else None)
