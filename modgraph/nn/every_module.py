"""Every module of a pool on the same value, or each on its own row."""

from __future__ import annotations

from torch import Tensor, nn

from modgraph.nn.pool import Pool


class EveryModule(nn.Module):
    """Whether a value has an axis of modules already."""

    def __init__(self, rows: bool) -> None:
        super().__init__()
        self.rows = rows


class EveryModuleRoute(nn.Module):
    """[..., message], or [..., M, message] row by row, gives [..., M, result]."""

    def forward(self, tokens: Tensor, pool: Pool, router: EveryModule, real: Tensor | None = None) -> Tensor:
        return pool.rows(tokens) if router.rows else pool.all(tokens)
