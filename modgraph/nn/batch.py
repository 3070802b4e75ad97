"""Statistics over the examples of a batch, and records of them, all processes together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from modgraph.nn.padding import cleared
from modgraph.nn.shard import whole_batch, whole_batch_sum


class BatchMean(nn.Module):
    """The mean over the batch and along axes, counted from the last; of nothing, zero."""

    def __init__(self, axes: Sequence[int]) -> None:
        super().__init__()
        self.axes = (0, *axes)

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """x [B, ...] gives the axes that are left."""
        return self.mean(x, real)[0].squeeze(self.axes)

    def mean(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """The mean, each axis that is gone over of length one, and how many places it is of."""
        counted = torch.ones((), dtype=x.dtype, device=x.device) if real is None else real.to(x.dtype)
        count = whole_batch_sum(counted.expand(x.shape).sum(self.axes, keepdim=True)).clamp(min=1)
        return whole_batch_sum(cleared(x, real).sum(self.axes, keepdim=True)) / count, count


class BatchVariance(BatchMean):
    """The mean squared distance from the mean."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """x [B, ...] gives the axes that are left."""
        off = cleared(x - self.mean(x, real)[0], real)
        return self.mean(off**2, real)[0].squeeze(self.axes)


class KeepRecent(nn.Module):
    """The most recent values of a record, without gradient: those of a batch are appended in its order, the oldest
    fall out."""

    def forward(self, record: Tensor, x: Tensor) -> Tensor:
        """record [..., L] and x [B, ...] give [..., L]."""
        appended = torch.cat([record, whole_batch(x.detach()).movedim(0, -1)], dim=-1)
        return appended[..., appended.shape[-1] - record.shape[-1] :].detach()
