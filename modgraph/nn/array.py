"""Arrays that are given, and arrays that a rule moves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Constant(nn.Module):
    """Given numbers, the same for every example; `rank` is how many axes one example of the operand has."""

    def __init__(self, rank: int, sizes: Sequence[int], values: Sequence[float]) -> None:
        super().__init__()
        self.rank = rank
        self.sizes = tuple(sizes)
        self.values = tuple(values)

    def forward(self, like: Tensor) -> Tensor:
        """like [..., axes of one] gives [..., *sizes]."""
        kind = like.dtype if like.is_floating_point() else torch.get_default_dtype()
        outer = like.shape[: like.dim() - self.rank]
        found = torch.tensor(self.values, dtype=kind, device=like.device)
        return (found if len(found) > 1 else found.expand(self._count)).reshape(self.sizes).expand(*outer, *self.sizes)

    @property
    def _count(self) -> int:
        return torch.Size(self.sizes).numel()


class State(nn.Module):
    """An array that is one for the whole batch; no gradient moves it."""

    value: Tensor

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(tuple(sizes)))

    def forward(self, like: Tensor) -> Tensor:
        return self.value


class NextState(nn.Module):
    """What a state becomes."""

    def forward(self, state: Tensor, value: Tensor) -> Tensor:
        return value.detach()
