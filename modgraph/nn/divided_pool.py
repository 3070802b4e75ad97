"""A pool whose modules are divided among the processes of a group; messages and results travel between them.

Shape suffixes: S tokens of this process, E edges (a token's message to a module).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from modgraph.nn.exchange import Group, exchange, send_rows, sum_over
from modgraph.nn.pool import IndexedFunction, Pool
from modgraph.nn.shard import enter_modules

KINDS = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool)  # dtypes of results


class DividedPool(Pool):
    """The pool that a group of processes holds together; this process holds the modules `own`, at some `places`.

    Modules have the names of their places in the whole pool. Each call is one of all processes of the group: each gets
    the results for its own tokens, and each module runs once on the messages of all, in the order of the processes.
    """

    def __init__(self, own: Pool, places: Sequence[range], group: Group, unlike: bool) -> None:
        super().__init__((), own._modules.get("shared"), own.rank, own.result_rank)
        self.places, self.group, self.unlike = places, group, unlike
        self.size = places[-1].stop
        self.own = (own,)  # a tuple, so that its modules are registered once, by their places in the whole pool
        for place, module in zip(self.own_places, own[:], strict=True):
            self.add_module(str(place), module)
        self.modules_of = [len(each) for each in places]

    @property
    def own_places(self) -> range:
        """The places of the modules that this process holds."""
        return self.places[self.group.place]

    def expert(self, index: int) -> Any:
        """One module, wherever it is; it maps [..., message] to [..., result]."""
        return partial(self._run_one, index)

    def runs_at_once(self, x: Tensor) -> bool:
        return False  # processes need the numbers of messages

    def run_sorted(self, x: Tensor, module: Tensor, counts: Tensor) -> Tensor:
        counts = counts.to(x.device)
        members, own = self.group.size, len(self.own_places)
        counts_from = send_rows(counts, self.modules_of, [own] * members, self.group).reshape(members, own)
        going = torch.stack([part.sum() for part in torch.split(counts, self.modules_of)])
        going_to, coming = torch.stack((going, counts_from.sum(1))).tolist()
        messages = exchange(x, going_to, coming, self.group)
        module_E = torch.arange(own, device=x.device).repeat(members).repeat_interleave(counts_from.flatten())
        order = module_E.argsort(stable=True)

        def run(pool: Pool) -> Tensor:
            found = pool.run_sorted(messages.index_select(0, order), module_E[order], counts_from.sum(0))
            return found.index_select(0, order.argsort())

        return self._return(run, messages, coming, going_to)

    def all(self, x: Tensor) -> Tensor:
        lead = x.shape[: x.dim() - self.rank]
        x_S = x.reshape(-1, *x.shape[len(lead) :])
        S, members = len(x_S), self.group.size
        counts = torch.full((members,), S, device=x.device)
        coming = send_rows(counts, [1] * members, [1] * members, self.group).tolist()
        messages = exchange(x_S.repeat(members, *[1] * self.rank), [S] * members, coming, self.group)
        own = len(self.own_places)
        sizes = [count * own for count in coming], [S * count for count in self.modules_of]
        values = self._return(lambda pool: pool.all(messages).flatten(0, 1), messages, *sizes)
        parts = zip(torch.split(values, sizes[1]), self.modules_of, strict=True)
        found = torch.cat([part.reshape(S, count, *part.shape[1:]) for part, count in parts], dim=1)
        return found.reshape(*lead, *found.shape[1:])

    def rows(self, x: Tensor) -> Tensor:
        axis = x.dim() - self.rank - 1
        lead, rows = x.shape[:axis], x.movedim(axis, 0).flatten(0, axis)
        S = len(rows) // self.size
        counts = torch.full((self.size,), S, device=x.device)
        found = self.run_sorted(rows, torch.arange(self.size, device=x.device).repeat_interleave(S), counts)
        return found.reshape(self.size, *lead, *found.shape[1:]).movedim(0, axis)

    def each(self, message: Callable[[int], Tensor]) -> Tensor:
        return self.rows(torch.stack([message(j) for j in range(self.size)], dim=-self.rank - 1))

    def stack_weights(self) -> IndexedFunction:
        """Make the function of module indices [E] and messages [E, ...], which sends each message to its module."""

        def run_indexed(module_E: Tensor, x: Tensor) -> Tensor:
            order = module_E.argsort(stable=True)
            counts = module_E.bincount(minlength=self.size)
            found = self.run_sorted(x.index_select(0, order), module_E[order], counts)
            return found.index_select(0, order.argsort())

        return run_indexed

    def _run_one(self, index: int, x: Tensor) -> Tensor:
        """Apply one module, which alone runs, to x [..., message] of all processes: [..., result]."""
        lead = x.shape[: x.dim() - self.rank]
        x_S = x.reshape(-1, *x.shape[len(lead) :])
        holder = next(at for at, each in enumerate(self.places) if index in each)
        going = [len(x_S) * (at == holder) for at in range(self.group.size)]
        ones = [1] * self.group.size
        coming = send_rows(torch.tensor(going, device=x.device), ones, ones, self.group).tolist()
        messages = exchange(x_S, going, coming, self.group)

        def run(pool: Pool) -> Tensor:
            is_here = index in self.own_places
            found = pool.expert(index - self.own_places.start)(messages) if is_here else None
            empty = self._share_kind(found, x.device)
            return empty if found is None else found

        found = self._return(run, messages, coming, going)
        return found.reshape(*lead, *found.shape[1:])

    def _share_kind(self, found: Tensor | None, device: torch.device) -> Tensor:
        """No rows of the shape and dtype of a result, which one process knows."""
        own = [0] * (1 + self.result_rank) if found is None else [KINDS.index(found.dtype), *found.shape[1:]]
        kind, *shape = sum_over(torch.tensor(own, device=device), self.group).tolist()
        return torch.empty(0, *shape, dtype=KINDS[kind], device=device)

    def _return(
        self, run: Callable[[Pool], Tensor], messages: Tensor, going: Sequence[int], coming: Sequence[int]
    ) -> Tensor:
        """Run the own modules, and send each process the results of its messages."""
        with enter_modules():
            results = run(self.own[0])
        if self.unlike and torch.is_autocast_enabled(messages.device.type):  # results may differ in precision
            results = results.to(torch.get_default_dtype())
        return exchange(results, going, coming, self.group, messages)
