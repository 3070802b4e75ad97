"""Layers that join, split, permute and expand axes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from modgraph.nn.layer import Layer
from modgraph.nn.padding import apply_mask


class Flatten(Layer):
    """Merges the last `rank` axes into one."""

    rank: int

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(-self.rank) if self.rank else x.unsqueeze(-1)


class Concat(Layer):
    """Concatenates values along an axis."""

    axis: int = -1

    def forward(self, *values: Tensor) -> Tensor:
        return torch.cat(values, dim=self.axis)


class Stack(Layer):
    """Stacks values [..., `rank` axes] along a new axis before their last `rank`."""

    rank: int

    def forward(self, *values: Tensor) -> Tensor:
        return torch.stack(values, dim=-1 - self.rank)


class Split(Layer):
    """Splits an axis into parts of given lengths."""

    lengths: Sequence[int]
    axis: int = -1

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(x, [*self.lengths], dim=self.axis)


class Transpose(Layer):
    """Permutes the last axes; `order` counts them from the last."""

    order: Sequence[int]

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(*range(x.dim() - len(self.order)), *self.order)


class Merge(Layer):
    """Merges the axes from `first` to `last`, counted from the last, into one."""

    first: int
    last: int

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(self.first, self.last)


class Unmerge(Layer):
    """Unflattens one axis into several of given lengths."""

    axis: int
    sizes: Sequence[int]

    def forward(self, x: Tensor) -> Tensor:
        return torch.unflatten(x, self.axis, self.sizes)


class NewAxis(Layer):
    """Repeats a value along a new axis; `place` counts the result's axes from the last."""

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
    """Repeats a value along an axis of `like`; `place` and `axis` count axes from the last."""

    place: int
    axis: int

    def forward(self, x: Tensor, like: Tensor) -> Tensor:
        x = x.unsqueeze(self.place)
        shape = [-1] * x.dim()
        shape[self.place] = like.shape[self.axis]
        return x.expand(shape)


class Select(Layer):
    """Selects one index along an axis, by default a token: [..., N, D] to [..., D]; zero in padding."""

    index: int
    axis: int = -2

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None and x.shape[self.axis] == 0:
            return x.sum(self.axis)
        return apply_mask(x, mask).select(self.axis, self.index)
