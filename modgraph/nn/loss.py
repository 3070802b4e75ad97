"""Losses and statistics: a number per example, [B], unless they say otherwise."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.padding import cleared
from modgraph.nn.shard import whole_batch_sum


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


class CrossEntropy(nn.Module):
    """−w[label] log softmax(logits)[label]: logits [B, ..., C], label [B, ...].

    The label `ignore` does not count: an example's mean is over its other labels, zero if there are none. Classes
    before `since` have no share, and no label that counts is one of them.
    """

    def __init__(
        self, weights: tuple[float, ...] = (), ignore: int | None = None, reduce: str = "mean", since: int = 0
    ) -> None:
        super().__init__()
        self.since = since
        self.weights = weights
        self.ignore = ignore
        self.reduce = reduce

    def forward(self, logits: Tensor, label: Tensor, real: Tensor | None = None) -> Tensor:
        label = label.long()
        counts = torch.ones_like(label, dtype=torch.bool) if self.ignore is None else label != self.ignore
        weight = logits.new_tensor(self.weights) if self.weights else None
        known = (label * counts).clamp(min=self.since)
        logits = cleared(logits, real)
        if self.since:
            logits = F.pad(logits[..., self.since :], (self.since, 0), value=-math.inf)
        loss = F.cross_entropy(logits.movedim(-1, 1), known, weight, reduction="none")
        if self.ignore is None or loss.dim() == 1 or self.reduce == "sum":
            return per_example(loss * counts, _of_positions(real), self.reduce)
        mask = _of_positions(real)
        counts = counts if mask is None else counts & mask
        return (loss * counts).flatten(1).sum(1) / counts.flatten(1).sum(1).clamp(min=1)


class Gaussian(nn.Module):
    """−log N(target; prediction, variance·I): prediction and target [B, ..., D], each vector a position."""

    def __init__(self, variance: float, reduce: str = "mean") -> None:
        super().__init__()
        self.variance = variance
        self.reduce = reduce

    def forward(self, prediction: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        squares = (cleared(prediction - target, real) ** 2).sum(-1)
        constant = prediction.shape[-1] * math.log(2 * math.pi * self.variance)
        return per_example((squares / self.variance + constant) / 2, _of_positions(real), self.reduce)


class MSE(nn.Module):
    """Mean of the squared error over everything an example holds."""

    def forward(self, prediction: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        return per_example(cleared(prediction - target, real) ** 2, real)


class Entropy(nn.Module):
    """−Σ p log p of p = softmax(logits): logits [B, ..., C]."""

    def forward(self, logits: Tensor, real: Tensor | None = None) -> Tensor:
        log_p = cleared(logits, real).log_softmax(-1)
        return per_example(-(log_p.exp() * log_p).sum(-1), _of_positions(real))


class Importance(nn.Module):
    """Σ over routes of CV²(Σ gates): gates [B, ..., N, M]; [B] over the example, a single number over the batch."""

    def __init__(self, over: str) -> None:
        super().__init__()
        self.over = over

    def forward(self, *gates: Tensor, real: tuple[Tensor | None, ...] | None = None) -> Tensor:
        masks = real or (None,) * len(gates)
        return torch.stack([self._of_one(cleared(each, mask)) for each, mask in zip(gates, masks, strict=True)]).sum(0)

    def _of_one(self, gates: Tensor) -> Tensor:
        if self.over == "example":
            return squared_cv(gates.flatten(1, -2).sum(1))
        return squared_cv(whole_batch_sum(gates.flatten(0, -2).sum(0)))


def squared_cv(x: Tensor) -> Tensor:
    """Variance (unbiased) over squared mean along the last axis; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=torch.finfo(x.dtype).tiny)
