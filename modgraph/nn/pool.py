"""A pool: modules with one interface, among which a router chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.grouped import GroupedFunction, SortedRows, Stack, can_stack, is_traced, pays, slices

IndexedFunction = Callable[[Tensor, Tensor], Tensor]  # module indices [E] and messages [E, ...] to results [E, ...]


class Pool(nn.Module):
    """M modules, named 0, 1, …; `shared` registers the weights that they share.

    `rank` is the number of axes of a message, `result_rank` that of a result. The axis of modules stands before them.
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
        self.can_group: bool | None = None  # not known yet

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        """One module, or a list of those in a slice."""
        places = range(self.size)[index]
        return self.expert(places) if isinstance(places, int) else [self.expert(each) for each in places]

    def expert(self, index: int) -> nn.Module:
        """One module; it maps [..., message] to [..., result]."""
        expert = self._modules[str(index)]
        assert expert is not None
        return expert

    def all(self, x: Tensor) -> Tensor:
        """Apply every module to x [..., message]: [..., M, result]."""
        axis = -self.rank - 1
        x = x.unsqueeze(axis)
        shape = list(x.shape)
        shape[axis] = self.size
        return self.rows(x.expand(shape))

    def experts(self) -> Sequence[nn.Module]:
        """All modules."""
        return [self.expert(j) for j in range(self.size)]

    def stack_weights(self) -> IndexedFunction:
        """Stack the modules' weights, once, into a function that takes them by index."""
        return Stack.from_modules(self.experts()).run_indexed

    def group_modules(self) -> GroupedFunction | None:
        """Stack the modules' weights into a function of rows sorted by module; None if an op has no such form."""
        experts = self.experts()
        return Stack.from_modules(experts).run_sorted if can_stack(experts[0]) else None

    def runs_at_once(self, x: Tensor) -> bool:
        """Whether `run_sorted` runs all modules at once on messages like x, and needs no numbers of messages."""
        if pays(x, self.expert(0)) and self.can_group is None:
            self.can_group = self.group_modules() is not None
        return pays(x, self.expert(0)) and bool(self.can_group)

    def run_sorted(self, x: Tensor, module: Tensor, counts: Tensor) -> Tensor:
        """Apply the modules to messages x [E, message] sorted by module [E]: [E, result].

        `counts` [M] are the numbers of messages. Every module gets a gradient, zero if it has no message; without
        gradients only modules with messages run.
        """
        run_grouped = self.group_modules() if self.runs_at_once(x) else None
        if run_grouped is not None:
            return run_grouped(SortedRows(module, counts), x)
        runs = [*zip(self.experts(), slices(x, counts), strict=True)]
        if not (torch.is_grad_enabled() or is_traced(x)):
            runs = [each for each in runs if len(each[1])] or runs[:1]
        return torch.cat([expert(part) for expert, part in runs])

    def rows(self, x: Tensor) -> Tensor:
        """Apply module j to row j of x [..., M, message]: [..., M, result]."""
        rows = x.unbind(-self.rank - 1)
        return self.each(lambda j: rows[j])

    def each(self, message: Callable[[int], Tensor]) -> Tensor:
        """Apply module j to `message(j)` [..., message]: [..., M, result]."""
        results = [expert(message(j)) for j, expert in enumerate(self.experts())]
        axis = -self.result_rank - 1
        return results[0].unsqueeze(axis) if self.size == 1 else torch.stack(results, dim=axis)
