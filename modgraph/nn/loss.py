"""Losses, [B] unless stated otherwise, and statistics over the batch of all processes.

Axis letters: B examples, C classes, D numbers of a vector, N tokens, M modules, L length of a record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.device import constant
from modgraph.nn.layer import Layer
from modgraph.nn.padding import apply_mask, both, mask_labels
from modgraph.nn.shard import whole_batch, whole_batch_sum


def per_example(x: Tensor, mask: Tensor | None, reduce: str = "mean") -> Tensor:
    """Reduce x [B, ...] to [B] by mean or sum over a mask that broadcasts against x."""
    if x.dim() == 1:
        return x
    total = apply_mask(x, mask).flatten(1).sum(1)
    if reduce == "sum":
        return total
    if mask is None:
        return x.flatten(1).mean(1)
    return total / mask.expand_as(x).flatten(1).sum(1).clamp(min=1)


def _position_mask(mask: Tensor | None) -> Tensor | None:
    """Squeeze a mask of vectors [B, ..., 1] to one of positions [B, ...]."""
    return None if mask is None else mask.squeeze(-1)


class CrossEntropy(Layer):
    """−w[label] log softmax(logits)[label]: logits [B, ..., C], label [B, ...].

    The label `ignore` does not count, nor does a negative one if labels may be `missing`: an example's mean is over its
    other labels, or zero without any. The softmax leaves out classes below `since`, which no counted label is in.
    """

    weights: tuple[float, ...] = ()
    ignore: int | None = None
    reduce: str = "mean"
    since: int = 0
    missing: bool = False

    def forward(self, logits: Tensor, label: Tensor, mask: Tensor | None = None) -> Tensor:
        label = label.long()
        counts = mask_labels(label, self.ignore, self.missing)
        there = both(counts, _position_mask(mask))
        weight = constant(self.weights, logits.dtype, logits.device) if self.weights else None
        known = (label if there is None else label * there).clamp(min=self.since)
        logits = apply_mask(logits, mask)
        if self.since:
            logits = F.pad(logits[..., self.since :], (self.since, 0), value=-math.inf)
        rows = logits.flatten(0, -2), known.flatten()  # classes along the last axis: the softmax reads them in order
        loss = F.cross_entropy(*rows, weight, reduction="none").reshape(known.shape)
        loss = loss if counts is None else loss * counts
        return per_example(loss, there, self.reduce)


class BinaryCrossEntropy(Layer):
    """−w₁ label log σ(logit) − w₀ (1 − label) log σ(−logit): logits [B, ...], label [B, ...] of classes 0 and 1 or of
    numbers between them.

    The class `ignore` does not count, nor do negative classes and NaNs if labels may be `missing`.
    """

    weights: tuple[float, ...] = ()
    ignore: int | None = None
    reduce: str = "mean"
    missing: bool = False

    def forward(self, logits: Tensor, label: Tensor, mask: Tensor | None = None) -> Tensor:
        there = both(mask_labels(label, self.ignore, self.missing), mask)
        logits, share = apply_mask(logits, there), apply_mask(label.to(logits.dtype), there)
        if not self.weights:
            return per_example(F.binary_cross_entropy_with_logits(logits, share, reduction="none"), there, self.reduce)
        no, yes = self.weights
        loss = yes * share * F.logsigmoid(logits) + no * (1 - share) * F.logsigmoid(-logits)
        return per_example(-loss, there, self.reduce)


class Gaussian(Layer):
    """−log N(target; prediction, variance·I): prediction and target [B, ..., D], each vector a position.

    If numbers may be `missing` (NaN), a position's likelihood is over its other numbers; one without any does not
    count.
    """

    variance: float
    reduce: str = "mean"
    missing: bool = False

    def forward(self, prediction: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        there = mask_labels(target, missing=self.missing)
        squares = (apply_mask(prediction - target, both(there, mask)) ** 2).sum(-1)
        numbers = prediction.shape[-1] if there is None else there.sum(-1).to(prediction.dtype)
        constant = numbers * math.log(2 * math.pi * self.variance)
        known = None if there is None else there.any(-1)
        return per_example((squares / self.variance + constant) / 2, both(known, _position_mask(mask)), self.reduce)


class MSE(Layer):
    """The mean squared error over all numbers of an example, without those that are `missing` (NaN)."""

    missing: bool = False

    def forward(self, prediction: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        counts = both(mask_labels(target, missing=self.missing), mask)
        return per_example(self.measure(apply_mask(prediction - target, counts)), counts)

    def measure(self, error: Tensor) -> Tensor:
        """The loss of each number."""
        return error**2


class L1(MSE):
    """The mean absolute error over all numbers of an example, without those that are `missing` (NaN)."""

    def measure(self, error: Tensor) -> Tensor:
        """The loss of each number."""
        return error.abs()


class Huber(MSE):
    """The mean over all numbers of an example, squared up to an error of `delta` and linear beyond it."""

    delta: float = 1.0

    def measure(self, error: Tensor) -> Tensor:
        """The loss of each number."""
        size = error.abs()
        near = size.clamp(max=self.delta)
        return near * (size - near / 2)


class Entropy(nn.Module):
    """−Σ p log p of p = softmax(logits): logits [B, ..., C]."""

    def forward(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        log_p = apply_mask(logits, mask).log_softmax(-1)
        return per_example(-(log_p.exp() * log_p).sum(-1), _position_mask(mask))


class Importance(Layer):
    """Σ over routes of CV²(Σ gates) of gates [B, ..., N, M]: [B] over an example, a scalar over the batch."""

    over: str

    def forward(self, *gates: Tensor, mask: tuple[Tensor | None, ...] | None = None) -> Tensor:
        found = []
        for each, own_mask in zip(gates, mask or (None,) * len(gates), strict=True):
            masked = apply_mask(each, own_mask)
            load = masked.flatten(1, -2).sum(1) if self.over == "example" else masked.flatten(0, -2).sum(0)
            found.append(cv_squared(load if self.over == "example" else whole_batch_sum(load)))
        return torch.stack(found).sum(0)


def cv_squared(x: Tensor) -> Tensor:
    """The squared coefficient of variation along the last axis, with unbiased variance; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    least = 2.0**20 * torch.finfo(x.dtype).tiny  # a smaller divisor would let a weighted gradient overflow
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=least)


class BatchMean(nn.Module):
    """The mean over the batch and along axes counted from the last; zero if the mask is all false."""

    def __init__(self, axes: Sequence[int]) -> None:
        super().__init__()
        self.axes = (0, *axes)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x [B, ...] gives the remaining axes."""
        return self.mean(x, mask)[0].squeeze(self.axes)

    def mean(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The mean, with reduced axes of length one, and the number of elements that it averages."""
        counted = torch.ones((), dtype=x.dtype, device=x.device) if mask is None else mask.to(x.dtype)
        count = whole_batch_sum(counted.expand(x.shape).sum(self.axes, keepdim=True)).clamp(min=1)
        return whole_batch_sum(apply_mask(x, mask).sum(self.axes, keepdim=True)) / count, count


class BatchVariance(BatchMean):
    """The mean squared distance from the mean."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x [B, ...] gives the remaining axes."""
        off = apply_mask(x - self.mean(x, mask)[0], mask)
        return self.mean(off**2, mask)[0].squeeze(self.axes)


class KeepRecent(nn.Module):
    """Appends a batch's values to a record, without gradient, and drops the oldest."""

    def forward(self, record: Tensor, x: Tensor) -> Tensor:
        """record [..., L] and x [B, ...] give [..., L]."""
        appended = torch.cat([record, whole_batch(x.detach()).movedim(0, -1)], dim=-1)
        return appended[..., appended.shape[-1] - record.shape[-1] :].detach()
