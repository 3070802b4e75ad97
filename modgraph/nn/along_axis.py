"""Reductions, softmax and contraction. `real` is a mask that broadcasts against x: true where a place is no padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.layer import Layer
from modgraph.nn.padding import cleared


class AlongAxis(Layer):
    axis: int


class Softmax(AlongAxis):
    """Softmax along an axis; zero in padding."""

    function = staticmethod(torch.softmax)

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        if real is None:
            return self.function(x, self.axis)
        least = torch.finfo(x.dtype).min  # which gives padding no share, and an example of padding alone one
        return self.function(cleared(x, real, least), self.axis).masked_fill(~real, 0.0)


class LogSoftmax(Softmax):
    """Log-softmax along an axis; zero in padding."""

    function = staticmethod(torch.log_softmax)


class Unit(AlongAxis):
    """Vectors of length one along an axis, the zero vector left; zero in padding."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return F.normalize(cleared(x, real), dim=self.axis, eps=1e-8)


class Sum(AlongAxis):
    """The sum along an axis, padding left out."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return cleared(x, real).sum(self.axis)


class Mean(AlongAxis):
    """The mean along an axis, padding left out; the mean of nothing is zero."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        if real is None:
            return x.mean(self.axis)
        return cleared(x, real).sum(self.axis) / real.sum(self.axis).clamp(min=1)


class Max(AlongAxis):
    """The largest value along an axis, padding left out; the largest of nothing is zero."""

    function, neutral = staticmethod(torch.amax), -torch.inf

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        found: Tensor = self.function(cleared(x, real, self.neutral), self.axis)
        return found if real is None else torch.where(real.any(self.axis), found, 0.0)


class Min(Max):
    """The least value along an axis, padding left out; the least of nothing is zero."""

    function, neutral = staticmethod(torch.amin), torch.inf


class Last(AlongAxis):
    """The last value along an axis, padding left out; the last of nothing is zero."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        if real is None:
            return x.select(self.axis, -1)
        if x.shape[self.axis] == 0:
            return x.sum(self.axis)
        length = real.sum(self.axis, keepdim=True)
        last = (length - 1).clamp(min=0).expand_as(x.narrow(self.axis, 0, 1))
        return x.gather(self.axis, last).masked_fill(length == 0, 0.0).squeeze(self.axis)


class Contract(nn.Module):
    """An einsum of two values, padding of each left out; one that is the same for all examples may stand for one alone.

    A product of matrices is computed as one, which ONNX Runtime does faster.
    """

    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation
        left, right, result = equation.replace(".", "").replace("->", ",").split(",")
        (over,) = {*left} & {*right} - {*result}
        self.free = (len(left) - 1, len(right) - 1)
        self.over = (left.find(over) - len(left), right.find(over) - len(right))
        self.aligned = bool({*left} & {*right} & {*result})

    def forward(self, left: Tensor, right: Tensor, real: tuple[Tensor | None, ...] = (None, None)) -> Tensor:
        left, right = cleared(left, real[0]), cleared(right, real[1])
        outer = [x.dim() - free - 1 for x, free in zip((left, right), self.free, strict=True)]
        if not self.aligned and outer[0] >= outer[1] and _is_one(right, outer[1]):
            return self._mapped(_last(left, self.over[0]), _last(right, self.over[1]))
        if not self.aligned and self.free == (1, 1) and outer[0] == outer[1]:
            left, right = _last(left, self.over[0]), _last(right, self.over[1])
            return (right @ left.reshape(left.shape[-2:]).mT).mT if _is_one(left, outer[0]) else left @ right.mT
        left, right = (x[(None,) * (max(outer) - own)] for x, own in zip((left, right), outer, strict=True))
        return torch.einsum(self.equation, left, right)

    def _mapped(self, left: Tensor, right: Tensor) -> Tensor:
        """Each vector of the left through one matrix, whose rows have all other axes of the right."""
        rows = right.shape[right.dim() - 1 - self.free[1] : -1]
        if not rows:
            return left @ right.flatten()
        found = F.linear(left, right.reshape(-1, right.shape[-1]))
        return found if len(rows) == 1 else found.reshape(*found.shape[:-1], *rows)


def _last(x: Tensor, axis: int) -> Tensor:
    """A value with an axis as its last."""
    return x if axis == -1 else x.movedim(axis, -1)


def _is_one(x: Tensor, outer: int) -> bool:
    """Whether a value with so many axes before an example's is known to be one for all examples."""
    return all(isinstance(size, int) and size == 1 for size in x.shape[:outer])
