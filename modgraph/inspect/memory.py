"""What one step of training holds in memory: weights, gradients, the optimizer's state, and activations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from modgraph.ir import Graph, GraphWeight, weights_of

BYTES = {"float32": 4, "bfloat16": 4, "float64": 8}  # of a number of a weight: bfloat16 is of the arithmetic alone


@dataclass(frozen=True)
class Memory:
    """Bytes at the peak of one training step, for a batch of so many examples."""

    batch: int
    weights: int
    gradients: int
    optimizer: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def memory_of(graph: Graph, batch: int, state_per_weight: int, precision: str = "float32") -> Memory:
    """The bytes of a training step; the optimizer keeps so many numbers for each number of a trained weight."""
    weights, number = weights_of(graph), BYTES[precision]
    trained = number * _count(each for each in weights if not each.buffer and not each.frozen)
    return Memory(batch, number * _count(weights), trained, state_per_weight * trained)


def _count(weights: Iterable[GraphWeight]) -> int:
    return sum(weight.count for weight in weights)
