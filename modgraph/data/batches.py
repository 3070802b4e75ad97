"""The orders in which examples are seen, and the batches of them: of training, evaluation and traces alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.torch import generator_for
from modgraph.data.declaration import Arrays
from modgraph.data.errors import UnknownGrouping
from modgraph.diagnostics import ModgraphError, did_you_mean

Batch = dict[str, Tensor]
Indices = slice | NDArray[Any]
EXAMPLES = 256  # a batch of an evaluation


def batch_of(arrays: Arrays, indices: Indices) -> Batch:
    """Some examples as tensors. Raises `ModgraphError` where a file cannot be read."""
    return {name: torch.from_numpy(array) for name, array in arrays.read(indices).items()}


def batches(arrays: Arrays, part: int = 0, parts: int = 1) -> Iterator[tuple[slice, Batch]]:
    """All examples as they stand, batch by batch, each with its indices; of several parts, one part's batches.

    Their size does not depend on how many examples there are. Raises `ModgraphError` where a file cannot be read.
    """
    for start in range(0, len(arrays), EXAMPLES)[part::parts]:
        indices = slice(start, start + EXAMPLES)
        yield indices, batch_of(arrays, indices)


def indices_by_group(arrays: Arrays, by: str | None) -> list[NDArray[np.int64]]:
    """The indices of each group's examples; of all in one without a grouping. Raises `ModgraphError`."""
    if by is None:
        return [np.arange(len(arrays))]
    if by not in arrays.groups:
        suggestion = (
            did_you_mean(by, arrays.groups, "groupings of this data are: {known}") if arrays.groups else "leave by out"
        )
        raise ModgraphError([UnknownGrouping(name=by, suggestion=suggestion)])
    return [np.flatnonzero(arrays.groups[by] == group) for group in arrays.names_of_groups(by)]


class RandomOrder:
    """Which examples each step of an epoch sees: `batch` of each group, a group that ends beginning anew.

    Without grouping and a number of steps, an epoch is one pass, and its last step may see fewer. It is a function of
    the seed, of the epoch, and of what it is for.
    """

    def __init__(
        self, arrays: Arrays, batch: int, by: str | None = None, steps: int | None = None, use: str = "order"
    ) -> None:
        self.groups = [torch.from_numpy(indices) for indices in indices_by_group(arrays, by)]
        self.batch = batch
        self.use = use
        self.one_pass = by is None and steps is None
        self.steps = steps or math.ceil(len(arrays) / (batch * len(self.groups)))

    def draw(self, seed: int, epoch: int, since: int = 0) -> Iterator[Tensor]:
        """The examples of each step of an epoch, from step `since` on, drawn as they are needed."""
        groups = enumerate(self.groups)
        columns = [self._stream(indices, self._generator(seed, epoch, group), since) for group, indices in groups]
        for step in zip(*columns, strict=True):
            yield torch.cat(step)

    def _stream(self, indices: Tensor, generator: torch.Generator, since: int) -> Iterator[Tensor]:
        """A group's part of each step, from one random order of the group after another."""
        passes, begun = divmod(since * self.batch, len(indices))
        for _ in range(passes):
            torch.randperm(len(indices), generator=generator)
        left = indices[torch.randperm(len(indices), generator=generator)][begun:]
        for step in range(since, self.steps):
            size = min(self.batch, len(indices) - step * self.batch) if self.one_pass else self.batch
            parts = [left]
            missing = size - len(left)
            while missing > 0:
                parts.append(indices[torch.randperm(len(indices), generator=generator)])
                missing -= len(indices)
            drawn = torch.cat(parts)
            yield drawn[:size]
            left = drawn[size:]

    def _generator(self, seed: int, epoch: int, group: int) -> torch.Generator:
        """Each group has one of its own, so that none is drawn further ahead than the others need."""
        return generator_for(seed, self.use, epoch, *([group] if group else []))
