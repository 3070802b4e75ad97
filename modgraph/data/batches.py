"""The order of examples, and their batches: for training, evaluation and traces."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.torch import make_generator
from modgraph.data.declaration import Arrays
from modgraph.data.errors import UnknownGrouping
from modgraph.diagnostics import ModgraphError, did_you_mean

T = TypeVar("T")
Batch = dict[str, Tensor]
Indices = slice | NDArray[Any]
EXAMPLES = 256  # per batch of an evaluation
READER = "modgraph reads ahead"  # prefix of the thread's name
AHEAD = 2  # batches that are read before they are requested
END: Any = object()


def batch_of(arrays: Arrays, indices: Indices, among: Indices | None = None) -> Batch:
    """Read examples as tensors. Padding is cut to the longest of them, or to the longest of `among`, a superset of
    them. Raises `ModgraphError` where a file cannot be read."""
    return {name: torch.from_numpy(array) for name, array in arrays.read(indices, among).items()}


def batches(arrays: Arrays, part: int = 0, parts: int = 1) -> Iterator[tuple[slice, Batch]]:
    """Yield all examples in order, batch by batch, each with its indices; with `parts`, every `parts`-th batch. The
    size of batches does not depend on the number of examples. Raises `ModgraphError` where a file cannot be read."""
    for start in range(0, len(arrays), EXAMPLES)[part::parts]:
        indices = slice(start, start + EXAMPLES)
        yield indices, batch_of(arrays, indices)


def list_indices_by_group(arrays: Arrays, by: str | None) -> list[NDArray[np.int64]]:
    """Return the indices of each group's examples; one group of all without a grouping. Raises `ModgraphError`."""
    if by is None:
        return [np.arange(len(arrays))]
    if by not in arrays.groups:
        known = "groupings of this data are: {known}"
        suggestion = did_you_mean(by, arrays.groups, known) if arrays.groups else "leave by out"
        raise ModgraphError([UnknownGrouping(name=by, suggestion=suggestion)])
    return [np.flatnonzero(arrays.groups[by] == group) for group in arrays.names_of_groups(by)]


class RandomOrder:
    """The random order of examples: each step of an epoch sees `batch` of each group; a group that ends begins again.

    Without a grouping and a number of steps, an epoch is one pass, and its last step may see fewer. With a `bucket` of
    several steps, their examples are sorted by length into steps. The order is a function of the seed, the epoch and
    the `use`.
    """

    def __init__(
        self,
        arrays: Arrays,
        batch: int,
        by: str | None = None,
        steps: int | None = None,
        use: str = "order",
        bucket: int | None = None,
    ) -> None:
        """Raises `ModgraphError` where the grouping does not exist, or a bucket has no lengths."""
        self.groups = [torch.from_numpy(indices) for indices in list_indices_by_group(arrays, by)]
        self.batch, self.use, self.bucket = batch, use, bucket
        self.one_pass = by is None and steps is None
        self.steps = steps or math.ceil(len(arrays) / (batch * len(self.groups)))
        self.lengths = torch.zeros(0) if bucket is None else torch.from_numpy(arrays.lengths())

    def draw(self, seed: int, epoch: int, since: int = 0) -> Iterator[Tensor]:
        """Yield the indices of each step of an epoch, from step `since` on, sampled as they are needed."""
        number, done = divmod(since, self.bucket or 1)
        groups = enumerate(self.groups)  # each has a generator of its own, so that no group samples ahead of others
        generators = [(group, make_generator(seed, self.use, epoch, *([at] if at else []))) for at, group in groups]
        columns = [self._stream(group, generator, since - done) for group, generator in generators]
        sampled = zip(*columns, strict=True)
        if self.bucket is None:
            yield from map(torch.cat, sampled)
            return
        while together := list(itertools.islice(sampled, self.bucket)):
            generator = make_generator(seed, f"{self.use} in a bucket", epoch, number)
            yield from self._bucket_by_length(together, generator)[done:]
            number, done = number + 1, 0

    def _stream(self, indices: Tensor, generator: torch.Generator, since: int) -> Iterator[Tensor]:
        """Yield a group's part of each step, from one random permutation of the group after another."""
        passes, begun = divmod(since * self.batch, len(indices))
        for _ in range(passes):
            torch.randperm(len(indices), generator=generator)
        left = indices[torch.randperm(len(indices), generator=generator)][begun:]
        for step in range(since, self.steps):
            size = min(self.batch, len(indices) - step * self.batch) if self.one_pass else self.batch
            while len(left) < size:
                left = torch.cat([left, indices[torch.randperm(len(indices), generator=generator)]])
            yield left[:size]
            left = left[size:]

    def _bucket_by_length(self, sampled: Sequence[tuple[Tensor, ...]], generator: torch.Generator) -> list[Tensor]:
        """Return the same examples in as many steps, sorted by length within each group, in a random order of steps.
        `sampled` has each group's part of each step. Which step is smaller than others is random too."""
        order = torch.randperm(len(sampled), generator=generator).tolist()
        columns = []
        for parts in zip(*(sampled[at] for at in order), strict=True):
            whole = torch.cat(parts)
            by_length = whole[self.lengths[whole].argsort(stable=True)]
            columns.append(torch.split(by_length, [len(part) for part in parts]))
        steps = [torch.cat(parts) for parts in zip(*columns, strict=True)]
        return [steps[at] for at in torch.randperm(len(steps), generator=generator).tolist()]


@contextmanager
def prefetch(items: Iterator[T], reads: bool = True) -> Iterator[Iterator[T]]:
    """Yield an iterator whose items a thread computes ahead; without `reads` they are computed on request.

    An exception of an item is raised in its place. The thread has ended when the context ends.
    """
    if not reads:
        yield items
        return
    reader = ThreadPoolExecutor(1, READER)
    made = deque(reader.submit(next, items, END) for _ in range(AHEAD))

    def receive() -> Iterator[T]:
        while (item := made.popleft().result()) is not END:
            made.append(reader.submit(next, items, END))
            yield item

    try:
        yield receive()
    finally:
        reader.shutdown(cancel_futures=True)
