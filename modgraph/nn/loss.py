"""Losses, a number per example [B] unless they say otherwise; statistics over a batch, all processes together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.device import constant
from modgraph.nn.layer import Layer
from modgraph.nn.padding import both, cleared, labelled
from modgraph.nn.shard import whole_batch, whole_batch_sum


def per_example(x: Tensor, real: Tensor | None, reduce: str = "mean") -> Tensor:
    """[B, ...] to [B] by mean or sum over what is real, `real` a mask that broadcasts against x."""
    if x.dim() == 1:
        return x
    total = cleared(x, real).flatten(1).sum(1)
    if reduce == "sum":
        return total
    if real is None:
        return x.flatten(1).mean(1)
    return total / real.expand_as(x).flatten(1).sum(1).clamp(min=1)


def _of_positions(real: Tensor | None) -> Tensor | None:
    """The mask of vectors [B, ..., D] as that of their positions [B, ...]."""
    return None if real is None else real.squeeze(-1)


class CrossEntropy(Layer):
    """−w[label] log softmax(logits)[label]: logits [B, ..., C], label [B, ...].

    The label `ignore` does not count, nor does a negative one where labels may be `missing`: an example's mean is over
    its other labels, zero if there are none. Classes before `since` have no share, and no label that counts is one of
    them.
    """

    weights: tuple[float, ...] = ()
    ignore: int | None = None
    reduce: str = "mean"
    since: int = 0
    missing: bool = False

    def forward(self, logits: Tensor, label: Tensor, real: Tensor | None = None) -> Tensor:
        label = label.long()
        counts = labelled(label, self.ignore, self.missing)
        there = both(counts, _of_positions(real))
        weight = constant(self.weights, logits.dtype, logits.device) if self.weights else None
        known = (label if there is None else label * there).clamp(min=self.since)
        logits = cleared(logits, real)
        if self.since:
            logits = F.pad(logits[..., self.since :], (self.since, 0), value=-math.inf)
        loss = F.cross_entropy(logits.movedim(-1, 1), known, weight, reduction="none")
        loss = loss if counts is None else loss * counts
        return per_example(loss, there, self.reduce)


class Gaussian(Layer):
    """−log N(target; prediction, variance·I): prediction and target [B, ..., D], each vector a position.

    Where numbers may be `missing`, a position's likelihood is that of the others, and one without any does not count.
    """

    variance: float
    reduce: str = "mean"
    missing: bool = False

    def forward(self, prediction: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        there = labelled(target, missing=self.missing)
        squares = (cleared(prediction - target, both(there, real)) ** 2).sum(-1)
        numbers = prediction.shape[-1] if there is None else there.sum(-1).to(prediction.dtype)
        constant = numbers * math.log(2 * math.pi * self.variance)
        known = None if there is None else there.any(-1)
        return per_example((squares / self.variance + constant) / 2, both(known, _of_positions(real)), self.reduce)


class MSE(Layer):
    """Mean of the squared error over everything an example holds, and has where numbers may be `missing`."""

    missing: bool = False

    def forward(self, prediction: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        counts = both(labelled(target, missing=self.missing), real)
        return per_example(cleared(prediction - target, counts) ** 2, counts)


class Entropy(nn.Module):
    """−Σ p log p of p = softmax(logits): logits [B, ..., C]."""

    def forward(self, logits: Tensor, real: Tensor | None = None) -> Tensor:
        log_p = cleared(logits, real).log_softmax(-1)
        return per_example(-(log_p.exp() * log_p).sum(-1), _of_positions(real))


class Importance(Layer):
    """Σ over routes of CV²(Σ gates): gates [B, ..., N, M]; [B] over the example, a single number over the batch."""

    over: str

    def forward(self, *gates: Tensor, real: tuple[Tensor | None, ...] | None = None) -> Tensor:
        found = []
        for each, mask in zip(gates, real or (None,) * len(gates), strict=True):
            given = cleared(each, mask)
            summed = given.flatten(1, -2).sum(1) if self.over == "example" else given.flatten(0, -2).sum(0)
            found.append(squared_cv(summed if self.over == "example" else whole_batch_sum(summed)))
        return torch.stack(found).sum(0)


def squared_cv(x: Tensor) -> Tensor:
    """Variance (unbiased) over squared mean along the last axis; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    least = 2.0**20 * torch.finfo(x.dtype).tiny  # by the smallest number a weighted gradient would overflow
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=least)


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
