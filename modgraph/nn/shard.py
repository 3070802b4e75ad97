"""The batch that a process has, as a part of the batch that all processes have together.

Training with several processes equals training with one if whatever looks at a whole batch sees all of it: sums over
the batch, and noise, which is drawn for the whole batch everywhere while each process takes its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.device import sent


@dataclass(frozen=True)
class Shard:
    """Rows `start` to `stop` of a batch of `total` examples.

    `add` sums a tensor over the processes, gradients too. `generator` is for noise of what is not an example: each
    process has its own.
    """

    start: int
    stop: int
    total: int
    add: Callable[[Tensor], Tensor]
    generator: torch.Generator

    def has(self, x: Tensor) -> bool:
        """Whether the rows of a tensor are examples."""
        return x.dim() > 0 and len(x) == self.stop - self.start

    def whole(self, x: Tensor) -> Tensor:
        """The rows of all processes, of x [own rows, ...]; without gradient."""
        rows = torch.zeros((self.total, *x.shape[1:]), dtype=torch.float64, device=x.device)
        rows[self.start : self.stop] = x.detach()
        return self.add(rows).to(x.dtype)

    def noise_like(self, like: Tensor, draw: Callable[..., Tensor]) -> Tensor:
        """Noise for a tensor: its rows of the noise of the whole batch, if its rows are examples."""
        if not self.has(like):
            return sent(draw(like.shape, dtype=like.dtype, generator=self.generator), like.device)
        return draw((self.total, *like.shape[1:]), dtype=like.dtype, device=like.device)[self.start : self.stop]


class _Process:
    """What this process has of the batch; None: all. A plain attribute, since `torch.compile` reads no context."""

    shard: Shard | None = None


_process = _Process()


@contextmanager
def sharded(shard: Shard | None) -> Iterator[None]:
    """Within it, the batch is this part of a larger one; None: it is whole."""
    before, _process.shard = _process.shard, shard
    try:
        yield
    finally:
        _process.shard = before


def is_sharded() -> bool:
    """Whether this process has a part of the batch only."""
    return _process.shard is not None


def whole_batch_sum(x: Tensor) -> Tensor:
    """The sum over all processes of what each has summed over its rows."""
    if _process.shard is not None:
        return _process.shard.add(x)
    return x


def whole_batch(x: Tensor) -> Tensor:
    """The rows of all processes, where those of a tensor are examples; without gradient."""
    if _process.shard is not None and _process.shard.has(x):
        return _process.shard.whole(x)
    return x


def own_rows(whole: Tensor, like: Tensor) -> Tensor:
    """Of a tensor of the whole batch the rows that stand for those of another, which is this process's part."""
    if _process.shard is not None and _process.shard.has(like):
        return whole[_process.shard.start : _process.shard.stop]
    return whole


def standard_normal(like: Tensor) -> Tensor:
    """Normal noise of a tensor's shape, type and device; the same for an example whichever process has it."""
    return noise_like(like, torch.randn)


def standard_gumbel(like: Tensor) -> Tensor:
    """Gumbel noise of a tensor's shape, type and device: the largest of it and logits is a draw from their softmax."""
    uniform = noise_like(like, torch.rand)
    return uniform.clamp_(min=torch.finfo(like.dtype).tiny).log_().neg_().log_().neg_()


class Dropout(nn.Dropout):
    """torch's dropout; an example keeps its noise whichever process has it, and however it lies in memory."""

    def forward(self, x: Tensor) -> Tensor:
        return x * noise_like(x, self._mask) if self.training else x

    def _mask(self, shape: Any, generator: torch.Generator | None = None, **kind: Any) -> Tensor:
        kept = torch.empty(shape, **kind).bernoulli_(1 - self.p, generator=generator)
        return kept / (1 - self.p)


def noise_like(like: Tensor, draw: Callable[..., Tensor]) -> Tensor:
    """Noise of a tensor's shape, type and device."""
    if _process.shard is not None:
        return _process.shard.noise_like(like, draw)
    return draw(like.shape, dtype=like.dtype, device=like.device)
