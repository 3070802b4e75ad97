"""Learned arrays."""

from __future__ import annotations

from modgraph.declare import TorchModule, Weight, normal
from modgraph.ops.array import Array


class Parameter(Array):
    """A learned array, the same for every example: what `weight w: float[4, 8] = normal(0.02)` declares.

    Its operand only tells how many examples there are. The weight has the declaration's own name.
    """

    name = "parameter"
    synonyms = ("variable", "learned", "learned_queries", "latents")
    example = "input x: float[5, 6] weight w: float[6] = normal(1.0) y = x * w output y"
    weights = (Weight("", "...", normal(0.02)),)
    module = TorchModule("modgraph.nn.Parameter", "rank", "sizes")
    is_array = True
