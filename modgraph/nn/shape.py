"""Joining, cutting, reducing, and arithmetic."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.padding import valid


class Flatten(nn.Module):
    """The last `rank` axes as one."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(-self.rank) if self.rank else x.unsqueeze(-1)


class Concat(nn.Module):
    """Joins values along the last axis."""

    def forward(self, *values: Tensor) -> Tensor:
        return torch.cat(values, dim=-1)


class Split(nn.Module):
    """Cuts the last axis into equal parts."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.chunk(self.parts, dim=-1)


class Softmax(nn.Softmax):
    """Softmax over the last axis."""

    def __init__(self) -> None:
        super().__init__(dim=-1)


class LogSoftmax(nn.LogSoftmax):
    """Log-softmax over the last axis."""

    def __init__(self) -> None:
        super().__init__(dim=-1)


class _Reduction(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis


class Sum(_Reduction):
    """The sum along an axis, padding left out."""

    def forward(self, x: Tensor, length: Tensor | None = None) -> Tensor:
        mask = valid(x, self.axis, length)
        return (x if mask is None else x * mask).sum(self.axis)


class Mean(_Reduction):
    """The mean along an axis, padding left out; the mean of nothing is zero."""

    def forward(self, x: Tensor, length: Tensor | None = None) -> Tensor:
        mask = valid(x, self.axis, length)
        if mask is None:
            return x.mean(self.axis)
        return (x * mask).sum(self.axis) / mask.sum(self.axis).clamp(min=1)


class Max(_Reduction):
    """The largest value along an axis, padding left out; the largest of nothing is zero."""

    def forward(self, x: Tensor, length: Tensor | None = None) -> Tensor:
        mask = valid(x, self.axis, length)
        if mask is None:
            return x.amax(self.axis)
        largest = x.masked_fill(~mask, -torch.inf).amax(self.axis)
        return torch.where(mask.any(self.axis), largest, 0.0)


class Last(_Reduction):
    """The last value along an axis, padding left out; the last of nothing is zero."""

    def forward(self, x: Tensor, length: Tensor | None = None) -> Tensor:
        real, earlier = (valid(x, self.axis, each) for each in (length, None if length is None else length - 1))
        if real is None or earlier is None:
            return x.select(self.axis, -1)
        return x.masked_fill(earlier | ~real, 0).sum(self.axis)


class Arithmetic(nn.Module):
    """left ∘ right, one of them perhaps a constant.

    A value of lower rank is broadcast within an example, never across the batch: its missing axes are put in between.
    """

    OPERATORS: dict[str, Any] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "**": operator.pow,
    }

    def __init__(
        self,
        symbol: str,
        left_rank: int,
        right_rank: int,
        left: float | None = None,
        right: float | None = None,
    ) -> None:
        super().__init__()
        self.function = self.OPERATORS[symbol]
        self.ranks = (left_rank, right_rank)
        self.left = left
        self.right = right

    def forward(self, *values: Tensor) -> Tensor:
        remaining = iter(values)
        left = next(remaining) if self.left is None else self.left
        right = next(remaining) if self.right is None else self.right
        rank = max(self.ranks)
        result: Tensor = self.function(*(_raised(*each, rank) for each in zip((left, right), self.ranks, strict=True)))
        return result


def _raised(value: Tensor | float, rank: int, wanted: int) -> Tensor | float:
    """A value of `rank` axes per example with ones in front of them, up to `wanted`; batch statistics as they are."""
    if not isinstance(value, Tensor) or value.dim() == 0:
        return value
    at = value.dim() - rank
    for _ in range(wanted - rank):
        value = value.unsqueeze(at)
    return value
