"""Losses and statistics: a number per example, [B], unless they say otherwise."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.padding import valid
from modgraph.nn.shard import whole_batch_sum


def mean_per_example(x: Tensor, length: Tensor | None) -> Tensor:
    """[B, ...] to [B]; with a length, the first axis after the batch holds padding."""
    return per_example(x, length, "mean")


def per_example(x: Tensor, length: Tensor | None, reduce: str) -> Tensor:
    """The same by mean or sum."""
    if x.dim() == 1:
        return x
    mask = valid(x, 1, length)
    if mask is None:
        return x.flatten(1).mean(1) if reduce == "mean" else x.flatten(1).sum(1)
    total = (x * mask).flatten(1).sum(1)
    return total / mask.expand_as(x).flatten(1).sum(1).clamp(min=1) if reduce == "mean" else total


class CrossEntropy(nn.Module):
    """−w[label] log softmax(logits)[label]: logits [B, ..., C], label [B, ...].

    The label `ignore` does not count: an example's mean is over its other labels, zero if there are none.
    """

    def __init__(self, weights: tuple[float, ...] = (), ignore: int | None = None, reduce: str = "mean") -> None:
        super().__init__()
        self.weights = weights
        self.ignore = ignore
        self.reduce = reduce

    def forward(self, logits: Tensor, label: Tensor, length: Tensor | None = None) -> Tensor:
        label = label.long()
        counts = torch.ones_like(label, dtype=torch.bool) if self.ignore is None else label != self.ignore
        weight = logits.new_tensor(self.weights) if self.weights else None
        known = label * counts
        loss = F.cross_entropy(logits.movedim(-1, 1), known, weight, reduction="none")
        if self.ignore is None or loss.dim() == 1 or self.reduce == "sum":
            return per_example(loss * counts, length, self.reduce)
        mask = valid(loss, 1, length)
        counts = counts if mask is None else counts & mask
        return (loss * counts).flatten(1).sum(1) / counts.flatten(1).sum(1).clamp(min=1)


class Gaussian(nn.Module):
    """−log N(target; prediction, variance·I): prediction and target [B, ..., D], each vector a position."""

    def __init__(self, variance: float, reduce: str = "mean") -> None:
        super().__init__()
        self.variance = variance
        self.reduce = reduce

    def forward(self, prediction: Tensor, target: Tensor, length: Tensor | None = None) -> Tensor:
        squares = ((prediction - target) ** 2).sum(-1)
        constant = prediction.shape[-1] * math.log(2 * math.pi * self.variance)
        return per_example((squares / self.variance + constant) / 2, length, self.reduce)


class MSE(nn.Module):
    """Mean of the squared error over everything an example holds."""

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        return mean_per_example((prediction - target) ** 2, None)


class Entropy(nn.Module):
    """−Σ p log p of p = softmax(logits): logits [B, ..., C]."""

    def forward(self, logits: Tensor, length: Tensor | None = None) -> Tensor:
        log_p = logits.log_softmax(-1)
        return mean_per_example(-(log_p.exp() * log_p).sum(-1), length)


class Importance(nn.Module):
    """Σ over routes of CV²(Σ gates): gates [B, ..., N, M]; [B] over the example, a single number over the batch."""

    def __init__(self, over: str) -> None:
        super().__init__()
        self.over = over

    def forward(self, *gates: Tensor) -> Tensor:
        return torch.stack([self._of_one(each) for each in gates]).sum(0)

    def _of_one(self, gates: Tensor) -> Tensor:
        if self.over == "example":
            return squared_cv(gates.flatten(1, -2).sum(1))
        return squared_cv(whole_batch_sum(gates.flatten(0, -2).sum(0)))


def squared_cv(x: Tensor) -> Tensor:
    """Variance (unbiased) over squared mean along the last axis; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=torch.finfo(x.dtype).tiny)
