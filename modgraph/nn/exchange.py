"""Rows that travel between the processes of a group, by all-to-all with unequal splits.

Every process of the group makes the same calls in the same order, forwards and backwards, also with no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Group:
    """Processes that hold the modules of divided pools together: their number, this one's place, torch's group."""

    size: int
    place: int
    handle: Any


class _Exchange(torch.autograd.Function):
    """`anchors` have no gradient: they keep the exchange in the graph of every process, whatever its own modules read
    and train, so that all processes take part in the backward pass, in one order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, going: Any, coming: Any, group: Any, *anchors: Tensor) -> Tensor:
        ctx.way_back, ctx.anchors = (coming, going, group), len(anchors)
        return send_rows(x, going, coming, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return send_rows(gradient, *ctx.way_back), *[None] * (3 + ctx.anchors)


def exchange(x: Tensor, going: Sequence[int], coming: Sequence[int], group: Group, *anchors: Tensor) -> Tensor:
    """Send consecutive rows of x [E, ...], so many to each member, and return those that come, in the order of members.

    `anchors` are tensors whose computation comes before.
    """
    always = torch.empty(0, requires_grad=True)
    found: Tensor = _Exchange.apply(x, going, coming, group, always, *anchors)  # type: ignore[no-untyped-call]
    return found


def send_rows(x: Tensor, going: Sequence[int], coming: Sequence[int], group: Group) -> Tensor:
    """`exchange` without gradient."""
    found = x.new_empty(sum(coming), *x.shape[1:])
    dist.all_to_all_single(found, x.contiguous(), [*coming], [*going], group=group.handle)
    return found


def sum_over(x: Tensor, group: Group) -> Tensor:
    """Sum a tensor over the members, without gradient."""
    found = x.detach().clone()
    dist.all_reduce(found, group=group.handle)
    return found
