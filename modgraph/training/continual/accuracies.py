"""What a continual training comes to: how right the model is on all tasks so far, after each of them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

Accuracies = Sequence[Sequence[float]]  # [tasks learnt, tasks measured]: after task t those on tasks 0..t


def overall(after: Sequence[float], examples: Sequence[int]) -> float:
    """The accuracy on all examples of some tasks, given that on each and how many examples it has."""
    return sum(each * count for each, count in zip(after, examples, strict=True)) / sum(examples)


def average_accuracy(found: Accuracies, examples: Sequence[int]) -> float:
    """Ā: the mean, over the moments after each task, of the accuracy on all tasks so far."""
    return mean(overall(after, examples[: len(after)]) for after in found)


def last_accuracy(found: Accuracies, examples: Sequence[int]) -> float:
    """A_N: the accuracy on all tasks after the last."""
    return overall(found[-1], examples[: len(found[-1])])


def forgetting(found: Accuracies) -> float:
    """How much less right the model is in the end on each task but the last than it was at best, in the mean."""
    last = found[-1]
    best = [max(after[task] for after in found[:-1] if task < len(after)) for task in range(len(last) - 1)]
    return mean(most - now for most, now in zip(best, last[:-1], strict=True)) if best else 0.0
