"""What a model keeps of the tokens that it has seen. A `mask` is false in padding."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from modgraph.nn.along_axis import AlongAxis

Masks = tuple[Tensor | None, ...]


class Append(AlongAxis):
    """Appends x [B, ..., N, ...] to `before` [B, ..., P, ...] along an axis: [B, ..., P + N, ...].

    The tokens of an example follow its own last one; what is left at the end is arbitrary.
    """

    def forward(self, before: Tensor, x: Tensor, mask: Masks | None = None) -> Tensor:
        joined = torch.cat((before, x), self.axis)
        of_before = None if mask is None else mask[0]
        if of_before is None:
            return joined
        count, place = count_tokens(of_before, self.axis), count_places(joined, self.axis)
        new = before.shape[self.axis] + (place - count).clamp(max=x.shape[self.axis] - 1)
        return joined.gather(self.axis, torch.where(place < count, place, new).expand_as(joined))


class Tail(AlongAxis):
    """The last N places of `joined` [..., P + N, ...], to which x [..., N, ...] was appended."""

    def forward(self, joined: Tensor, x: Tensor) -> Tensor:
        count = x.shape[self.axis]
        return joined.narrow(self.axis, joined.shape[self.axis] - count, count)


class Recent(AlongAxis):
    """The last `count` places of `joined` [B, ..., count + N, ...], whose last N are tokens x, some of them padding."""

    count: int

    def forward(self, joined: Tensor, x: Tensor, mask: Masks | None = None) -> Tensor:
        size, of_x = joined.shape[self.axis], None if mask is None else mask[1]
        last = joined.narrow(self.axis, size - self.count, self.count)
        if of_x is None:
            return last
        first = of_x.sum(self.axis, keepdim=True) + size - x.shape[self.axis] - self.count
        return joined.gather(self.axis, (first + count_places(last, self.axis)).expand_as(last))


class Retain(AlongAxis):
    """The `first` and the `last` tokens of `joined` [B, ..., N, ...], of all N if there are no more.

    Where examples differ in length, there are always first + last places; those beyond an example are arbitrary.
    """

    first: int
    last: int

    def forward(self, joined: Tensor, mask: Tensor | None = None) -> Tensor:
        size, most = joined.shape[self.axis], self.first + self.last
        if mask is None:
            if size <= most:
                return joined
            last = joined.narrow(self.axis, size - self.last, self.last)
            return torch.cat((joined.narrow(self.axis, 0, self.first), last), self.axis) if self.first else last
        place = torch.arange(most, device=joined.device).reshape(-1, *[1] * (-1 - self.axis))
        beyond = (count_tokens(mask, self.axis) - most).clamp(min=0)
        source = torch.where(place < self.first, place, place + beyond).clamp(max=size - 1)
        shape = [*joined.shape]
        shape[self.axis] = most
        return joined.gather(self.axis, source.expand(shape))


def count_places(x: Tensor, axis: int) -> Tensor:
    """0, 1, 2, … along an axis, counted from the last: broadcasts against x."""
    return torch.arange(x.shape[axis], device=x.device).reshape(-1, *[1] * (-1 - axis))


def count_tokens(mask: Tensor, axis: int) -> Tensor:
    """Count the tokens of each example along an axis, which may be empty: broadcasts against the mask."""
    # one place more: ONNX Runtime for the web (1.30) cannot sum along an empty axis
    return functional.pad(mask.long(), (*[0, 0] * (-1 - axis), 0, 1)).sum(axis, keepdim=True)
