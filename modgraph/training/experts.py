"""Processes that divide the pools of a model among them: `train.experts` of a recipe.

Consecutive processes are a group, which holds all modules. With several groups, each has a part of every batch, and the
processes in the same place of all groups hold replicas of the same modules.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

from modgraph.nn import Group, Messages
from modgraph.nn.exchange import sum_over

T = TypeVar("T")


class Experts:
    """The group of this process, and the replicas of its modules."""

    def __init__(self, size: int, processes: int, rank: int) -> None:
        groups = [dist.new_group([*range(at, at + size)]) for at in range(0, processes, size)]
        columns = [dist.new_group([*range(at, processes, size)]) for at in range(size)]
        self.processes = processes
        self.group = Group(size, rank % size, groups[rank // size])
        self.replicas = Group(processes // size, rank // size, columns[rank % size])

    def messages(self, generator: torch.Generator, own_batch: bool = False) -> Messages:
        """Return the shard inside modules; with `own_batch`, where each group has a batch of its own."""
        if own_batch or self.replicas.size == 1:
            return Messages(0, 0, 0, lambda x: x, generator)
        handle = self.replicas.handle
        return Messages(
            0, 0, 0, lambda x: add_over(x, handle), generator, replicas=self.replicas.size, replica=self.replicas.place
        )

    @torch.no_grad()
    def average(self, weights: Sequence[nn.Parameter]) -> None:
        """Turn the gradients of modules into those of the mean of all processes' losses. A group's own losses are in
        them already. A weight has a gradient where it has one in any replica."""
        if self.replicas.size > 1 and weights:
            device = weights[0].device
            known = sum_over(
                torch.tensor([int(each.grad is not None) for each in weights], device=device), self.replicas
            )
            for weight, count in zip(weights, known.tolist(), strict=True):
                if count and weight.grad is None:
                    weight.grad = torch.zeros_like(weight)
        gradients = [each.grad for each in weights if each.grad is not None]
        if self.replicas.size > 1:
            for kind in dict.fromkeys(each.dtype for each in gradients):
                same = [each for each in gradients if each.dtype == kind]
                total = sum_over(torch.cat([each.flatten() for each in same]), self.replicas)
                for own, found in zip(same, torch.split(total, [each.numel() for each in same]), strict=True):
                    own.copy_(found.view_as(own))
        if gradients:
            torch._foreach_div_(gradients, self.processes)

    def norm(self, gradients: Sequence[Tensor], device: torch.device) -> Tensor:
        """Return the norm over the gradients of the modules of all members."""
        own = nn.utils.get_total_norm(gradients).to(device) if gradients else torch.zeros((), device=device)
        return sum_over(own.double() ** 2, self.group).sqrt()

    def first(self, found: T | None) -> T | None:
        """Return the least of what processes have found; None where none found anything."""
        every: list[Any] = [None] * self.processes
        dist.all_gather_object(every, found)
        return min((each for each in every if each is not None), default=None)

    def merge(self, own: Mapping[str, T]) -> dict[str, T]:
        """Merge the entries of all members of the group."""
        every: list[Any] = [None] * self.group.size
        dist.all_gather_object(every, {**own}, group=self.group.handle)
        return {name: each for part in every for name, each in part.items()}

    def gather(self, own: Mapping[str, Tensor], device: torch.device, keep: bool = True) -> dict[str, Tensor]:
        """Gather the tensors of all members of the group by name; those of others are on the processor. A process that
        does not `keep` them returns its own."""
        kinds = {name: (self.group.place, tuple(each.shape), each.dtype) for name, each in own.items()}
        found: dict[str, Tensor] = {}
        for name, (member, shape, dtype) in self.merge(kinds).items():
            is_own = member == self.group.place
            x = own[name].detach().to(device).contiguous() if is_own else torch.empty(shape, dtype=dtype, device=device)
            dist.broadcast(x, group=self.group.handle, group_src=member)
            if is_own or keep:
                found[name] = own[name] if is_own else x.cpu()
        return found


def add_over(x: Tensor, group: Any) -> Tensor:
    """Sum a tensor over the processes of a group, with gradients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        total: Tensor = all_reduce(x, group=group)  # type: ignore[no-untyped-call]
    return total


def select(named: Mapping[str, T], names: Iterable[str]) -> tuple[dict[str, T], dict[str, T]]:
    """Split entries by name: those among `names`, also parts of such weights, and the others."""
    wanted = {*names}
    inside = {name: each for name, each in named.items() if name.partition("[")[0] in wanted}
    return inside, {name: each for name, each in named.items() if name not in inside}
