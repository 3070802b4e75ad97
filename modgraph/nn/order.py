"""Running sums, ranks, the k-th value and positions along an axis; `real` is true where a place is no padding."""

from __future__ import annotations

import torch
from torch import Tensor

from modgraph.nn.along_axis import AlongAxis
from modgraph.nn.layer import Layer
from modgraph.nn.padding import cleared


def exact(x: Tensor) -> torch.dtype:
    """A type that holds whole numbers as they are, where that of x, of two bytes, would round them."""
    return x.dtype if x.dtype.itemsize >= 4 else torch.float32


def sorted_places(x: Tensor, axis: int, descending: bool = False) -> Tensor:
    """The places along an axis in the order of their values, of equal ones the first in front.

    ONNX has no stable sort, but its TopK, which any sort becomes, takes the first of equal values.
    """
    if torch.compiler.is_exporting():
        return x.sort(dim=axis, descending=descending).indices
    return x.argsort(dim=axis, descending=descending, stable=True)


class CumulativeSum(AlongAxis):
    """At each place the sum up to there, padding left out."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return cleared(x, real).cumsum(self.axis)


class SortOrder(AlongAxis):
    """The rank of each place, of equal values the first in front, padding last."""

    descending: bool = False

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        last = cleared(x.detach(), real, -torch.inf if self.descending else torch.inf)
        order = sorted_places(last, self.axis, self.descending)
        return sorted_places(order, self.axis).to(exact(x))


class KthLargest(AlongAxis):
    """The k-th largest value, padding left out; of fewer the least, of none zero."""

    k: int

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        order = sorted_places(cleared(x.detach(), real, -torch.inf), self.axis, descending=True)
        if real is None:
            last = order.narrow(self.axis, min(self.k, x.shape[self.axis]) - 1, 1).clone()
            return x.gather(self.axis, last).squeeze(self.axis)
        count = real.sum(self.axis, keepdim=True)
        at = (count.clamp(max=self.k) - 1).clamp(min=0).expand(order.narrow(self.axis, 0, 1).shape)
        found = x.gather(self.axis, order.gather(self.axis, at)).squeeze(self.axis)
        return torch.where(real.any(self.axis), found, 0.0)


class Positions(Layer):
    """0, 1, 2, … along an axis of values of `rank` axes, for each example."""

    axis: int
    rank: int

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[self.axis]
        found = torch.arange(length, dtype=exact(x), device=x.device)
        return found.expand(*x.shape[: x.dim() - self.rank], length)
