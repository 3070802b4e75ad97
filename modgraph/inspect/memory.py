"""What one step of training holds in memory, from the graph alone.

What a forward pass leaves for the backward pass is told by the declarations (`modgraph.tape`); the peak is the largest
of the moments of a step: the end of the way there, the way back, the move of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from modgraph.inspect.steps import taped
from modgraph.ir import Graph, GraphWeight, weights_of
from modgraph.passes import TRAINING, apply_passes
from modgraph.tape import moments

MOST = 10**9  # examples of a batch; what fits more is said to fit this many
BYTES = {"float32": 4, "bfloat16": 4, "float64": 8}  # of a number of a weight: bfloat16 is of the arithmetic alone


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

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def memory_of(graph: Graph, step: TrainingStep, lengths: Mapping[str, int] | None = None) -> Memory:
    """The memory of a training step, axes of any length taken at the given lengths (1 where none is given).

    Raises `ModgraphError` where a length does not fit.
    """
    return _memory(apply_passes(graph, TRAINING), step, dict(lengths or {}))


def largest_batch(graph: Graph, step: Callable[[int], TrainingStep], lengths: Mapping[str, int], size: int) -> int:
    """The largest batch whose step holds at most so many bytes at once; 0 where a single example takes more."""
    lowered = apply_passes(graph, TRAINING)
    return last_below(lambda batch: _memory(lowered, step(batch), lengths).peak, size)


def _memory(lowered: Graph, step: TrainingStep, lengths: Mapping[str, int]) -> Memory:
    number, weights = BYTES[step.precision], weights_of(lowered)
    trained = [each for each in weights if not each.buffer and not each.frozen]
    tape = taped(lowered, lengths, step.batch, step.precision)
    found = moments(tape.tape, tape.objectives)
    gradients = number * _count(trained)
    fixed = number * _count(weights) + step.state_per_weight * gradients
    work = step.work_per_weight * number * max((each.count for each in trained), default=0)
    most = [found.forward, found.backward, gradients + work]
    if step.tried_at_once:
        trial = taped(lowered, lengths, step.tried_at_once, step.precision, learns=False)
        most.append(gradients + moments(trial.tape, ()).forward + trial.examples - tape.examples)
    return Memory(
        batch=step.batch,
        weights=number * _count(weights),
        gradients=gradients,
        optimizer=step.state_per_weight * gradients,
        examples=round(tape.examples),
        activations=round(found.kept),
        peak=round(fixed + tape.examples + max(most)),
    )


def _count(weights: list[GraphWeight]) -> int:
    return sum(weight.count for weight in weights)


def last_below(peak: Callable[[int], int], size: int) -> int:
    """The last batch at which a peak is at most some size. Peaks grow as lines do, ever steeper, so that a line between
    two of them never points too far."""
    low, high = 1, 2
    if peak(low) > size:
        return 0
    while peak(high) <= size:
        low, high = high, 8 * high
        if low >= MOST:
            return MOST
    while high - low > 1:
        at_low, at_high = peak(low), peak(high)
        guess = low + int((size - at_low) / (at_high - at_low) * (high - low))
        guess = min(max(guess, low + 1), high - 1)
        if peak(guess) > size:
            high = guess
        elif peak(min(guess + 1, high)) > size:
            return guess
        else:
            low = guess
    return low
