"""Cumulative sums, ranks, the k-th value and positions along an axis. A `mask` is false in padding."""

from __future__ import annotations

import torch
from torch import Tensor

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.layer import Layer
from modgraph.nn.padding import apply_mask


def exact(x: Tensor) -> torch.dtype:
    """A dtype that represents whole numbers exactly: float32 if that of x has two bytes, else that of x."""
    return x.dtype if x.dtype.itemsize >= 4 else torch.float32


def stable_argsort(x: Tensor, axis: int, descending: bool = False) -> Tensor:
    """The indices that sort x along an axis, stably.

    ONNX has no stable sort, but torch exports any sort as TopK, which takes the first of equal values.
    """
    if torch.compiler.is_exporting():
        return x.sort(dim=axis, descending=descending).indices
    return x.argsort(dim=axis, descending=descending, stable=True)


class CumulativeSum(AlongAxis):
    """The sum up to each place, without padding."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return apply_mask(x, mask).cumsum(self.axis)


class SortOrder(AlongAxis):
    """The rank of each place in a stable sort, padding last."""

    descending: bool = False

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        last = apply_mask(x.detach(), mask, -torch.inf if self.descending else torch.inf)
        order = stable_argsort(last, self.axis, self.descending)
        return stable_argsort(order, self.axis).to(exact(x))


class KthLargest(AlongAxis):
    """The k-th largest value without padding; the least if there are fewer than k, zero if there are none."""

    k: int

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        order = stable_argsort(apply_mask(x.detach(), mask, -torch.inf), self.axis, descending=True)
        if mask is None:
            last = order.narrow(self.axis, min(self.k, x.shape[self.axis]) - 1, 1).clone()
            return x.gather(self.axis, last).squeeze(self.axis)
        count = mask.sum(self.axis, keepdim=True)
        at = (count.clamp(max=self.k) - 1).clamp(min=0).expand(order.narrow(self.axis, 0, 1).shape)
        found = x.gather(self.axis, order.gather(self.axis, at)).squeeze(self.axis)
        return torch.where(mask.any(self.axis), found, 0.0)


class Positions(Layer):
    """0, 1, 2, … along an axis of x, whose examples have `rank` axes: [..., length]."""

    axis: int
    rank: int

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[self.axis]
        found = torch.arange(length, dtype=exact(x), device=x.device)
        return found.expand(*x.shape[: x.dim() - self.rank], length)
