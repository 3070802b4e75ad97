"""A pool: modules of one interface, one of which or several a router may choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from modgraph.nn.grouped import Together, taken_by_index, together

ByIndex = Callable[[Tensor, Tensor], Tensor]  # modules [E] and messages [E, ...] to results


class Pool(nn.Module):
    """M modules, named 0, 1, …; what they have in common stands under `shared`.

    `rank` is how many trailing axes one message has; the axis before them is the modules' in `rows` and `all`.
    """

    def __init__(
        self, experts: Iterable[nn.Module], shared: nn.Module | None = None, rank: int = 1, result_rank: int = 1
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

    def __getitem__(self, index: int) -> nn.Module:
        return self.expert(range(self.size)[index])

    def expert(self, index: int) -> nn.Module:
        """One module; it takes [..., message] to [..., result]."""
        expert = self._modules[str(index)]
        assert expert is not None
        return expert

    def all(self, x: Tensor) -> Tensor:
        """Every module on x [..., message]: [..., M, result]."""
        axis = -self.rank - 1
        x = x.unsqueeze(axis)
        shape = list(x.shape)
        shape[axis] = self.size
        return self.rows(x.expand(shape))

    def gathered(self) -> ByIndex:
        """The same modules with their weights stacked, once, so that they are taken by index."""
        return taken_by_index([self.expert(j) for j in range(self.size)])

    def at_once(self) -> Together | None:
        """All modules on rows that are sorted by module, their weights stacked; None where some op has no such form."""
        return together([self.expert(j) for j in range(self.size)])

    def rows(self, x: Tensor) -> Tensor:
        """Module j on row j of x [..., M, message]: [..., M, result]."""
        rows = x.unbind(-self.rank - 1)
        return self.each(lambda j: rows[j])

    def each(self, message: Callable[[int], Tensor]) -> Tensor:
        """Each module on a message of its own [..., message]: [..., M, result]."""
        results = [self.expert(j)(message(j)) for j in range(self.size)]
        axis = -self.result_rank - 1
        return results[0].unsqueeze(axis) if self.size == 1 else torch.stack(results, dim=axis)
