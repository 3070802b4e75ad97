"""What only files of their own hold.

B is the batch axis, T that of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.padding import both, labelled

Tensors = Sequence[Tensor]


class Named(nn.Module):
    """Modules and parameters under any names."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        super().__init__()
        for name, each in named.items():
            (self._parameters if isinstance(each, nn.Parameter) else self._modules)[name] = each


def scan(
    step: Callable[..., tuple[Tensors, Tensors]], x: Tensor, states: Tensors, length: Tensor | None = None
) -> list[Tensor]:
    """Results [B, T, ...] of a step, which takes a slice [B, ...] of x and states to the next states and results
    [B, ...]. At and beyond an example's length, states stay as they are and results are zero."""
    steps, found = x.shape[1], []
    for time, each in enumerate((x if steps else x.new_zeros(len(x), 1, *x.shape[2:])).unbind(1)):
        following, results = step(each, *states)
        if length is not None and steps:
            over = [time >= length.to(x.device).reshape(-1, *[1] * (new.dim() - 1)) for new in (*following, *results)]
            following = [torch.where(end, old, new) for end, old, new in zip(over, states, following, strict=False)]
            results = [result.masked_fill(end, 0) for end, result in zip(over[len(states) :], results, strict=True)]
        states = following
        found.append(results)
    return [torch.stack(each, dim=1)[:, :steps] for each in zip(*found, strict=True)]


def value_of(found: Any) -> Tensor:
    """The value that a route gives, without what its router recorded."""
    value: Tensor = found[0] if isinstance(found, tuple) else found
    return value


def with_labels(target: Tensor, real: Tensor | None, ignored: int | None, missing: bool) -> Tensor:
    """Which examples [B] of a target [B, ...] have any label that counts."""
    counts = both(labelled(target, ignored, missing), real)
    counts = torch.ones_like(target, dtype=torch.bool) if counts is None else counts
    return counts.flatten(1).any(1) if target.dim() > 1 else counts
