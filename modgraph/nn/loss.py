"""Losses and statistics: a number per example, [B], unless they say otherwise."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.padding import valid


def mean_per_example(x: Tensor, length: Tensor | None) -> Tensor:
    """[B, ...] to [B]; with a length, the first axis after the batch holds padding."""
    if x.dim() == 1:
        return x
    mask = valid(x, 1, length)
    if mask is None:
        return x.flatten(1).mean(1)
    return (x * mask).flatten(1).sum(1) / mask.expand_as(x).flatten(1).sum(1).clamp(min=1)


class CrossEntropy(nn.Module):
    """−log softmax(logits)[label]: logits [B, ..., C], label [B, ...]."""

    def forward(self, logits: Tensor, label: Tensor, length: Tensor | None = None) -> Tensor:
        loss = F.cross_entropy(logits.movedim(-1, 1), label.long(), reduction="none")
        return mean_per_example(loss, length)


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
        used = gates.flatten(1, -2).sum(1) if self.over == "example" else gates.flatten(0, -2).sum(0)
        return squared_cv(used)


def squared_cv(x: Tensor) -> Tensor:
    """Variance (unbiased) over squared mean along the last axis; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=torch.finfo(x.dtype).tiny)
