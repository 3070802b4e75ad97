"""Rows cut where the data say: an operation of its own, so that a trace can hold sizes that it does not know."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def slices(x: Tensor, counts: Tensor) -> Sequence[Tensor]:
    """The rows of x [E, ...] in parts one after another, so many each: counts [M], which add up to E."""
    if torch.compiler.is_exporting():
        parts: Sequence[Tensor] = traced(x, counts, counts.shape[0])
        torch._check(sum(part.shape[0] for part in parts) == x.shape[0])  # type: ignore[no-untyped-call]
        return parts
    return torch.split(x, counts.tolist())


@torch.library.custom_op("modgraph::slices", mutates_args=())
def traced(x: Tensor, counts: Tensor, parts: int) -> list[Tensor]:
    """As one operation of a traced graph; torch's own would be a number read out of a tensor for each part."""
    return [part.clone() for part in torch.split(x, counts.tolist())]


@traced.register_fake
def _(x: Tensor, counts: Tensor, parts: int) -> list[Tensor]:
    sizes = [torch.library.get_ctx().new_dynamic_size() for _ in range(parts)]
    return [x.new_empty(size, *x.shape[1:]) for size in sizes]
