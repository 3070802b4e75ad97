"""Reductions, softmax and contraction. A `mask` broadcasts against x and is false in padding."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.layer import Layer
from modgraph.nn.padding import apply_mask


class AlongAxis(Layer):
    axis: int


class Softmax(AlongAxis):
    """Softmax along an axis; zero in padding."""

    function = staticmethod(torch.softmax)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return self.function(x, self.axis)
        least = torch.finfo(x.dtype).min  # finite, so that an example of nothing but padding gets no NaN
        return self.function(apply_mask(x, mask, least), self.axis).masked_fill(~mask, 0.0)


class LogSoftmax(Softmax):
    """Log-softmax along an axis; zero in padding."""

    function = staticmethod(torch.log_softmax)


class Unit(AlongAxis):
    """Normalises vectors to length one along an axis; the zero vector stays, padding gets zero."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return F.normalize(apply_mask(x, mask), dim=self.axis, eps=1e-8)


class Sum(AlongAxis):
    """The sum along an axis without padding."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return apply_mask(x, mask).sum(self.axis)


class Mean(AlongAxis):
    """The mean along an axis without padding; zero where an example has no element."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x.mean(self.axis)
        return apply_mask(x, mask).sum(self.axis) / mask.sum(self.axis).clamp(min=1)


class Max(AlongAxis):
    """The largest value along an axis without padding; zero where an example has no element."""

    function, neutral = staticmethod(torch.amax), -torch.inf

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        found: Tensor = self.function(apply_mask(x, mask, self.neutral), self.axis)
        return found if mask is None else torch.where(mask.any(self.axis), found, 0.0)


class Min(Max):
    """The least value along an axis without padding; zero where an example has no element."""

    function, neutral = staticmethod(torch.amin), torch.inf


class LogSumExp(AlongAxis):
    """log Σ exp(x) along an axis without padding; zero where an example has no element."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x.logsumexp(self.axis)
        least = torch.finfo(x.dtype).min  # finite, so that an example of nothing but padding gets no NaN
        return torch.where(mask.any(self.axis), apply_mask(x, mask, least).logsumexp(self.axis), 0.0)


class Last(AlongAxis):
    """The last value along an axis without padding; zero where an example has no element."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x.select(self.axis, -1)
        if x.shape[self.axis] == 0:
            return x.sum(self.axis)
        length = mask.sum(self.axis, keepdim=True)
        last = (length - 1).clamp(min=0).expand_as(x.narrow(self.axis, 0, 1))
        return x.gather(self.axis, last).masked_fill(length == 0, 0.0).squeeze(self.axis)


class Contract(nn.Module):
    """An einsum of two masked values. A value that all examples share may have outer axes of size 1.

    A product of matrices uses `matmul` or `linear`, which ONNX Runtime runs faster.
    """

    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation
        left, right, result = equation.replace(".", "").replace("->", ",").split(",")
        (over,) = {*left} & {*right} - {*result}
        self.free = (len(left) - 1, len(right) - 1)
        self.over = (left.find(over) - len(left), right.find(over) - len(right))
        self.aligned = bool({*left} & {*right} & {*result})
        # the operand that is a matrix for each vector of the other, which has the axes before
        self.matrix = next(
            (
                side
                for side, m, v in ((0, left, right), (1, right, left))
                if m[:-2] == v[:-1] and v[-1] == over and m.replace(over, "") == result
            ),
            None,
        )

    def forward(self, left: Tensor, right: Tensor, mask: tuple[Tensor | None, ...] = (None, None)) -> Tensor:
        left, right = apply_mask(left, mask[0]), apply_mask(right, mask[1])
        outer = [x.dim() - free - 1 for x, free in zip((left, right), self.free, strict=True)]
        if not self.aligned and outer[0] >= outer[1] and _is_one(right, outer[1]):
            return self._multiply(_last(left, self.over[0]), _last(right, self.over[1]))
        if not self.aligned and self.free == (1, 1) and outer[0] == outer[1]:
            left, right = _last(left, self.over[0]), _last(right, self.over[1])
            return (right @ left.reshape(left.shape[-2:]).mT).mT if _is_one(left, outer[0]) else left @ right.mT
        if self.matrix is not None and outer[0] == outer[1] and not torch.compiler.is_exporting():
            matrix, vector = (left, right)[:: 1 - 2 * self.matrix]
            if matrix.shape[:-2] == vector.shape[:-1]:
                return multiply_vectors(_last(matrix, self.over[self.matrix]), vector)
        left, right = (x[(None,) * (max(outer) - own)] for x, own in zip((left, right), outer, strict=True))
        return torch.einsum(self.equation, left, right)

    def _multiply(self, left: Tensor, right: Tensor) -> Tensor:
        """Multiply each vector of `left` by one matrix; its rows are the other axes of `right`, flattened."""
        rows = right.shape[right.dim() - 1 - self.free[1] : -1]
        if not rows:
            return left @ right.flatten()
        found = F.linear(left, right.reshape(-1, right.shape[-1]))
        return found if len(rows) == 1 else found.reshape(*found.shape[:-1], *rows)


def multiply_vectors(matrix: Tensor, vector: Tensor) -> Tensor:
    """Multiply each matrix [..., N, K] by its vector [..., K]."""
    found: Tensor = _MultiplyVectors.apply(matrix, vector)  # type: ignore[no-untyped-call]
    return found


class _MultiplyVectors(torch.autograd.Function):
    """Products by rows of one vector: torch multiplies those by columns of one, and their gradients, slowly."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(matrix, vector)
        return (vector.unsqueeze(-2) @ matrix.mT).squeeze(-2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        dtype = torch.promote_types(*(each.dtype for each in ctx.saved_tensors))  # autocast is for the forward pass
        matrix, vector, grad = (each.to(dtype) for each in (*ctx.saved_tensors, *grads))
        return grad.unsqueeze(-1) * vector.unsqueeze(-2), (grad.unsqueeze(-2) @ matrix).squeeze(-2)


def _last(x: Tensor, axis: int) -> Tensor:
    """Move an axis to the end."""
    return x if axis == -1 else x.movedim(axis, -1)


def _is_one(x: Tensor, outer: int) -> bool:
    """Whether all `outer` axes before an example's have the constant size 1: one value for all examples."""
    return all(isinstance(size, int) and size == 1 for size in x.shape[:outer])
