"""Joining, cutting and moving axes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from modgraph.nn.layer import Layer
from modgraph.nn.padding import cleared


class Flatten(Layer):
    """The last `rank` axes as one."""

    rank: int

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(-self.rank) if self.rank else x.unsqueeze(-1)


class Concat(nn.Module):
    """Joins values along the last axis."""

    def forward(self, *values: Tensor) -> Tensor:
        return torch.cat(values, dim=-1)


class Stack(Layer):
    """Values of `rank` axes, beside the batch's, along a new axis before these."""

    rank: int

    def forward(self, *values: Tensor) -> Tensor:
        return torch.stack(values, dim=-1 - self.rank)


class Split(Layer):
    """Cuts the last axis into parts of these lengths."""

    lengths: Sequence[int]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(x, [*self.lengths], dim=-1)


class Transpose(Layer):
    """The last axes in another order, which has their places counted from the last."""

    order: Sequence[int]

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(*range(x.dim() - len(self.order)), *self.order)


class Merge(Layer):
    """Neighbouring axes, the first and the last counted from the last of all, as one."""

    first: int
    last: int

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(self.first, self.last)


class Unmerge(Layer):
    """One axis as several of these lengths."""

    axis: int
    sizes: Sequence[int]

    def forward(self, x: Tensor) -> Tensor:
        return torch.unflatten(x, self.axis, self.sizes)


class NewAxis(Layer):
    """A value repeated along a new axis, whose place in the result is counted from the last."""

    place: int
    length: int

    def forward(self, x: Tensor) -> Tensor:
        x = x.unsqueeze(self.place)
        if self.length == 1:
            return x
        shape = [-1] * x.dim()
        shape[self.place] = self.length
        return x.expand(shape)


class Expand(Layer):
    """A value repeated along an axis of another, whose place in either is counted from the last."""

    place: int
    axis: int

    def forward(self, x: Tensor, like: Tensor) -> Tensor:
        x = x.unsqueeze(self.place)
        shape = [-1] * x.dim()
        shape[self.place] = like.shape[self.axis]
        return x.expand(shape)


class Select(Layer):
    """One place along an axis, by default a token: [..., N, D] to [..., D]; of padding it is zero."""

    index: int
    axis: int = -2

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        if real is not None and x.shape[self.axis] == 0:
            return x.sum(self.axis)
        return cleared(x, real).select(self.axis, self.index)
