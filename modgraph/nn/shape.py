"""Joining, cutting, and arithmetic."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, nn


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


class Stack(nn.Module):
    """Values of `rank` axes, beside the batch's, along a new axis before these."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, *values: Tensor) -> Tensor:
        return torch.stack(values, dim=-1 - self.rank)


class Split(nn.Module):
    """Cuts the last axis into equal parts."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.chunk(self.parts, dim=-1)


class Arithmetic(nn.Module):
    """left ∘ right, one of them perhaps a constant.

    `left_lacks` and `right_lacks` are the axes of the result that a value does not have, counted from the last: within
    an example it is repeated along them, never across the batch.
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
        left_lacks: tuple[int, ...] = (),
        right_lacks: tuple[int, ...] = (),
        left: float | None = None,
        right: float | None = None,
    ) -> None:
        super().__init__()
        self.function = self.OPERATORS[symbol]
        self.lacks = (left_lacks, right_lacks)
        self.left = left
        self.right = right

    def forward(self, *values: Tensor) -> Tensor:
        remaining = iter(values)
        left = next(remaining) if self.left is None else self.left
        right = next(remaining) if self.right is None else self.right
        result: Tensor = self.function(*map(_widened, (left, right), self.lacks))
        return result


def _widened(value: Tensor | float, lacks: tuple[int, ...]) -> Tensor | float:
    """A value with the axes that it lacks, counted from the last; batch statistics and constants as they are."""
    if not isinstance(value, Tensor) or value.dim() == 0:
        return value
    for axis in reversed(lacks):
        value = value.unsqueeze(axis)
    return value
