"""A route: its router's form over a pool's modules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class CompiledRoute:
    """One place where a router sends messages through a pool. A value without an axis of senders is a single sender;
    a result for each sender then has none either. `alone`: the form takes it so, and all else without that axis too;
    what it records, of which so many are results, has one."""

    form: Any
    pool: Any
    router: Any
    single: bool
    result_rank: int
    one_for_each_sender: bool
    alone: bool = False
    records: int = 0
    once: bool = False

    def __call__(self, tokens: Tensor, *others: Tensor, real: Tensor | None = None) -> Any:
        if self.alone:
            value, *records = self.form(tokens, self.pool, self.router, *others)
            return (value, *(each.unsqueeze(-2) for each in records[: self.records]))
        if not self.single:
            return self.form(tokens, self.pool, self.router, *others, real=real)
        results = self.form(tokens.unsqueeze(-self.pool.rank - 1), self.pool, self.router, *others)
        if not self.one_for_each_sender:
            return results
        value, *records = results
        return (value.squeeze(-self.result_rank - 1), *records)

    def stacked(self) -> CompiledRoute:
        """The same for all steps of a scan: weights that are stacked `once` are stacked here."""
        return replace(self, pool=self.pool.gathered()) if self.once else self
