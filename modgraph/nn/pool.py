"""A pool: modules of one interface, one of which or several a router may choose."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Pool(nn.Module):
    """M modules, named 0, 1, …; what they have in common stands under `shared`.

    `rank` is how many trailing axes one message has; the axis before them is the modules' in `rows` and `all`.
    """

    def __init__(
        self,
        experts: Iterable[nn.Module],
        shared: nn.Module | None = None,
        rank: int = 1,
        result_rank: int = 1,
    ) -> None:
        super().__init__()
        if shared is not None:
            self.add_module("shared", shared)
        self.size = 0
        for expert in experts:
            self.add_module(str(self.size), expert)
            self.size += 1
        self.rank = rank
        self.result_rank = result_rank

    def __len__(self) -> int:
        return self.size

    def expert(self, index: int) -> nn.Module:
        """One module; it takes [..., message] to [..., result]."""
        return self.get_submodule(str(index))

    def all(self, x: Tensor) -> Tensor:
        """Every module on x [..., message]: [..., M, result]."""
        axis = -self.rank - 1
        x = x.unsqueeze(axis)
        shape = list(x.shape)
        shape[axis] = self.size
        return self.rows(x.expand(shape))

    def rows(self, x: Tensor) -> Tensor:
        """Module j on row j of x [..., M, message]: [..., M, result]."""
        rows = x.unbind(-self.rank - 1)
        return torch.stack([self.expert(j)(row) for j, row in enumerate(rows)], dim=-self.result_rank - 1)
