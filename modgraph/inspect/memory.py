"""What a training step holds in memory, as numbers; `modgraph.backends.torch.step_memory` measures them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MOST = 10**9  # examples of a batch; what fits more is said to fit this many


@dataclass(frozen=True)
class TrainingStep:
    """How a step is done: examples, what an optimizer keeps and makes for each number of a weight, the precision.

    `tried_at_once` are examples that an algorithm runs without gradients, beside its steps.
    """

    batch: int = 1
    state_per_weight: int = 2
    work_per_weight: int = 0
    precision: str = "float32"
    tried_at_once: int = 0


@dataclass(frozen=True)
class Memory:
    """Bytes of tensors in a training step.

    `activations` are what autograd keeps for the backward pass, `examples` the batch itself, `peak` the most there is
    at once. That may be less than the sum of the others, since gradients of weights come while activations go, or more:
    activations have gradients on their way, and optimizers and algorithms work beside.
    """

    batch: int
    weights: int
    gradients: int
    optimizer: int
    examples: int
    activations: int
    peak: int


def last_below(peak: Callable[[int], int], size: int) -> int:
    """The last batch at which a peak is at most some size. Peaks grow as lines do, ever steeper: a line through two of
    them meets the size never too early beyond them, and never too late between them."""
    low, high = 1, 2
    if peak(low) > size:
        return 0
    while peak(high) <= size:
        if high >= MOST:
            return MOST
        low, high = high, min(MOST, _met(peak, low, high, size) + 1)
    while high - low > 1:
        guess = min(max(_met(peak, low, high, size), low + 1), high - 1)
        if peak(guess) > size:
            high = guess
        elif peak(guess + 1) > size:
            return guess
        else:
            low = guess + 1
    return low


def _met(peak: Callable[[int], int], low: int, high: int, size: int) -> int:
    """Where the line through two peaks meets a size."""
    rise = peak(high) - peak(low)
    return MOST if rise <= 0 else low + (size - peak(low)) * (high - low) // rise
