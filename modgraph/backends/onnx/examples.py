"""Examples to verify an export on: a user's arrays, or random ones of the inputs' types."""

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
from modgraph.backends.report import move_ends, random_values
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, find_padded_axes, longest
from modgraph.types import TensorType

Arrays = Mapping[str, NDArray[Any]]
Lengths = Mapping[str, int]  # of axes of any length

SAMPLE = 64
SHORT, LONG = 5, 8  # the first length; each further axis is a little longer


@dataclass(frozen=True)
class Examples:
    """An endless sequence of examples for a graph: `given` arrays, repeated cyclically, or random ones."""

    graph: Graph
    given: Arrays | None = None

    @classmethod
    def from_arrays(cls, graph: Graph, given: Arrays | None) -> Examples:
        """Examples from a user's arrays, targets among them ignored. Raises `ModgraphError` if they do not fit."""
        if given is None:
            return cls(graph)
        types = graph.input_types
        ports = {
            name: Port(name, type_.dtype, type_.dimensions, type_.size, name, along=type_.of, ends=type_.end_dimensions)
            for name, type_ in types.items()
        }
        wanted = {name: array for name, array in given.items() if name in types}
        try:
            arrays, lengths = Inputs(ports, longest(graph)).fit(wanted)
        except BundleError as error:
            raise ModgraphError([BadExamples(reason=str(error))]) from error
        if lengths[BATCH] == 0:
            raise ModgraphError([BadExamples(reason="the arrays have no examples")])
        return cls(graph, arrays)

    def lengths(self) -> tuple[Lengths, ...]:
        """The lengths to try for each padded axis: a shorter and a longer one, different between axes."""
        axes = find_padded_axes(self.graph)
        if not axes:
            return ({},)
        if self.given is None:
            limits = longest(self.graph)
            long = {axis: min(LONG + 2 * at, limits.get(axis, LONG + 2 * at)) for at, axis in enumerate(axes)}
        else:
            shapes = ((self.given[name].shape[1:], type_.shape) for name, type_ in self.graph.input_types.items())
            pairs = (pair for own, shape in shapes for pair in zip(shape, own, strict=True))
            long = {axis.lengths: length for axis, length in pairs if axis.is_padded}
        short = {axis: max(1, min(SHORT + 2 * at, long[axis] - 1)) for at, axis in enumerate(axes)}
        return short, long

    def draw(self, start: int, count: int, lengths: Lengths) -> dict[str, Tensor]:
        """`count` examples from `start` on, with padded axes of the given lengths."""
        types = self.graph.input_types.items()
        if self.given is not None:
            cut = {name: _cut(self.given[name], type_, start, count, lengths) for name, type_ in types}
            return move_ends(cut, self.graph)
        seed = start, count, *lengths.values()
        batch = {name: random_values(type_, count, lengths, "verify", name, *seed) for name, type_ in types}
        return move_ends(batch, self.graph)

    def sample(self) -> Arrays:
        """All given examples, or `SAMPLE` random ones."""
        return self.given or {name: value.numpy() for name, value in self.draw(0, SAMPLE, self.lengths()[-1]).items()}


def _cut(array: NDArray[Any], type_: TensorType, start: int, count: int, lengths: Lengths) -> Tensor:
    """Take `count` examples of an array from `start` on, cyclically, with axes cut to `lengths`."""
    rows = array[np.arange(start, start + count) % len(array)]
    if type_.dtype == "length":
        rows = rows.clip(max=lengths[type_.of])
    cut = tuple(slice(lengths[axis.lengths] if axis.is_padded else None) for axis in type_.shape)
    return torch.from_numpy(np.ascontiguousarray(rows[(slice(None), *cut)]))
