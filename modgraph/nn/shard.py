"""A process's shard of the batch.

Training with several processes equals training with one: sums over the batch run over all processes, and every process
samples the noise of the whole batch and takes its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.device import to_device


@dataclass(frozen=True)
class Shard:
    """Rows `start` to `stop` of a batch of `total` examples.

    `add` sums a tensor over the processes, with gradients. `generator`, one for each process, samples noise for tensors
    without a batch axis. `in_modules` is the shard inside the modules of divided pools, where rows are messages.
    """

    start: int
    stop: int
    total: int
    add: Callable[[Tensor], Tensor]
    generator: torch.Generator
    in_modules: Messages | None = None

    def has(self, x: Tensor) -> bool:
        """Whether the rows of a tensor are examples."""
        return x.dim() > 0 and len(x) == self.stop - self.start

    def whole(self, x: Tensor) -> Tensor:
        """Gather the rows of all processes from x [own rows, ...]: [total, ...], without gradient; other tensors
        stay."""
        return self._gather(x, self.start, self.stop, self.total) if self.has(x) else x

    def own_rows(self, whole: Tensor, like: Tensor) -> Tensor:
        """This process's rows of a tensor of the whole batch, if the rows of `like` are examples."""
        return whole[self.start : self.stop] if self.has(like) else whole

    def noise_like(self, like: Tensor, draw: Callable[..., Tensor]) -> Tensor:
        """Sample noise of a tensor's shape; if its rows are examples, its rows of the whole batch's noise."""
        if not self.has(like):
            return to_device(draw(like.shape, dtype=like.dtype, generator=self.generator), like.device)
        return draw((self.total, *like.shape[1:]), dtype=like.dtype, device=like.device)[self.start : self.stop]

    def _gather(self, x: Tensor, start: int, stop: int, total: int) -> Tensor:
        rows = torch.zeros((total, *x.shape[1:]), dtype=torch.float64, device=x.device)
        rows[start:stop] = x.detach()
        return self.add(rows).to(x.dtype)


@dataclass(frozen=True)
class Messages(Shard):
    """The messages to a module of a divided pool. `replicas` processes hold the module, this one in place `replica`;
    they have messages of consecutive parts of the batch. Noise is each process's own."""

    replicas: int = 1
    replica: int = 0

    def has(self, x: Tensor) -> bool:
        return False

    def whole(self, x: Tensor) -> Tensor:
        if self.replicas == 1 or not x.dim():
            return x
        return self._gather(x, *self._place_rows(x))

    def own_rows(self, whole: Tensor, like: Tensor) -> Tensor:
        if self.replicas == 1 or not like.dim():
            return whole
        start, stop, _ = self._place_rows(like)
        return whole[start:stop]

    def _place_rows(self, x: Tensor) -> tuple[int, int, int]:
        """The start and the stop of this process's messages among those of all replicas, and their number."""
        counts = torch.zeros(self.replicas, dtype=torch.float64, device=x.device)
        counts[self.replica] = len(x)
        counts = self.add(counts).long()
        stop = int(counts[: self.replica + 1].sum())
        return stop - len(x), stop, int(counts.sum())


class _Process:
    """This process's shard; None for the whole batch. A plain attribute: `torch.compile` reads no context variable."""

    shard: Shard | None = None


_process = _Process()


@contextmanager
def enter_modules() -> Iterator[None]:
    """Compute the modules of a divided pool in a `with` block: their rows are messages."""
    shard = _process.shard
    with use_shard(None if shard is None else shard.in_modules):
        yield


@contextmanager
def use_shard(shard: Shard | None) -> Iterator[None]:
    """Set this process's shard in a `with` block; None for the whole batch."""
    before, _process.shard = _process.shard, shard
    try:
        yield
    finally:
        _process.shard = before


def is_sharded() -> bool:
    """Whether this process has only a part of the batch."""
    return _process.shard is not None


def whole_batch_sum(x: Tensor) -> Tensor:
    """Sum over all processes what each has summed over its rows."""
    if _process.shard is not None:
        return _process.shard.add(x)
    return x


def whole_batch(x: Tensor) -> Tensor:
    """Gather the rows of all processes, if the rows of x are examples: [total, ...], without gradient."""
    if _process.shard is not None:
        return _process.shard.whole(x)
    return x


def own_rows(whole: Tensor, like: Tensor) -> Tensor:
    """This process's rows of a tensor of the whole batch, if the rows of `like` are examples."""
    if _process.shard is not None:
        return _process.shard.own_rows(whole, like)
    return whole


def standard_normal(like: Tensor) -> Tensor:
    """Sample normal noise of a tensor's shape, dtype and device; it does not depend on how the batch is sharded."""
    return noise_like(like, torch.randn)


def standard_gumbel(like: Tensor) -> Tensor:
    """Sample Gumbel noise of a tensor's shape, dtype and device: argmax(logits + noise) samples their softmax."""
    uniform = noise_like(like, torch.rand)
    return uniform.clamp_(min=torch.finfo(like.dtype).tiny).log_().neg_().log_().neg_()


class Dropout(nn.Dropout):
    """torch's dropout, whose noise depends neither on how the batch is sharded nor on its memory layout."""

    def forward(self, x: Tensor) -> Tensor:
        return x * noise_like(x, self._mask) if self.training else x

    def _mask(self, shape: Any, generator: torch.Generator | None = None, **kind: Any) -> Tensor:
        kept = torch.empty(shape, **kind).bernoulli_(1 - self.p, generator=generator)
        return kept / (1 - self.p)


class DropPath(nn.Module):
    """Zeroes whole examples, or messages, of `rank` axes with a probability, and scales the others."""

    def __init__(self, rate: float, rank: int) -> None:
        super().__init__()
        self.rate, self.rank = rate, rank

    def forward(self, x: Tensor) -> Tensor:
        """x [..., `rank` axes] gives that shape."""
        if not self.training or not self.rate:
            return x
        one = x.new_empty(*x.shape[: x.dim() - self.rank], *[1] * self.rank)
        return torch.where(noise_like(one, torch.rand) < self.rate, 0.0, x / (1 - self.rate))


def noise_like(like: Tensor, draw: Callable[..., Tensor]) -> Tensor:
    """Sample noise of a tensor's shape, dtype and device by `draw`."""
    if _process.shard is not None:
        return _process.shard.noise_like(like, draw)
    return draw(like.shape, dtype=like.dtype, device=like.device)
