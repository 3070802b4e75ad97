"""Examples to verify an export on: real ones where there are some, or else random ones of the inputs' types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from modgraph_runtime.ports import BATCH, BundleError, Inputs, Port
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.errors import BadExamples
from modgraph.backends.report import random_values
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, longest, padded_axes
from modgraph.types import TensorType

Arrays = Mapping[str, NDArray[Any]]
Lengths = Mapping[str, int]  # of axes of any length

SAMPLE = 64
SHORT, LONG = 5, 8  # of the first axis of any length; each further one is a little longer


@dataclass(frozen=True)
class Examples:
    """An endless row of examples for a graph. `given` are arrays that fit it, used again and again."""

    graph: Graph
    given: Arrays | None = None

    @classmethod
    def of(cls, graph: Graph, given: Arrays | None) -> Examples:
        """Examples from a user's arrays, targets among them ignored. Raises `ModgraphError` if they do not fit."""
        if given is None:
            return cls(graph)
        types = graph.input_types
        ports = {
            name: Port(name, type_.dtype, type_.dimensions, type_.size, name, along=type_.of)
            for name, type_ in types.items()
        }
        wanted = {name: array for name, array in given.items() if name in types}
        try:
            arrays, lengths = Inputs(ports, longest(graph)).fit(wanted)
        except BundleError as error:
            raise ModgraphError([BadExamples(reason=str(error))]) from error
        if lengths[BATCH] == 0:
            raise ModgraphError([BadExamples(reason="there are no examples in the arrays")])
        return cls(graph, arrays)

    def lengths(self) -> tuple[Lengths, ...]:
        """The lengths of axes of any length to try: a shorter and a longer of each, no two axes alike."""
        axes = padded_axes(self.graph)
        if not axes:
            return ({},)
        if self.given is None:
            limits = longest(self.graph)
            long = {axis: min(LONG + 2 * at, limits.get(axis, LONG + 2 * at)) for at, axis in enumerate(axes)}
        else:
            shapes = ((self.given[name].shape[1:], type_.shape) for name, type_ in self.graph.input_types.items())
            pairs = (pair for own, shape in shapes for pair in zip(shape, own, strict=True))
            long = {axis.name: length for axis, length in pairs if axis.is_padded}
        short = {axis: max(1, min(SHORT + 2 * at, long[axis] - 1)) for at, axis in enumerate(axes)}
        return short, long

    def draw(self, start: int, count: int, lengths: Lengths) -> dict[str, Tensor]:
        """`count` examples from the place `start` on, axes of any length as long as asked."""
        types = self.graph.input_types.items()
        if self.given is not None:
            return {name: _cut(self.given[name], type_, start, count, lengths) for name, type_ in types}
        seed = start, count, *lengths.values()
        return {name: random_values(type_, count, lengths, "verify", name, *seed) for name, type_ in types}

    def sample(self) -> Arrays:
        """All that were given, or as many random ones as tell something."""
        return self.given or {name: value.numpy() for name, value in self.draw(0, SAMPLE, self.lengths()[-1]).items()}


def _cut(array: NDArray[Any], type_: TensorType, start: int, count: int, lengths: Lengths) -> Tensor:
    """Examples of an array, counted around, as long as asked."""
    chosen = array[np.arange(start, start + count) % len(array)]
    if type_.dtype == "length":
        chosen = chosen.clip(max=lengths[type_.of])
    cut = tuple(slice(lengths[axis.name] if axis.is_padded else None) for axis in type_.shape)
    return torch.from_numpy(np.ascontiguousarray(chosen[(slice(None), *cut)]))
