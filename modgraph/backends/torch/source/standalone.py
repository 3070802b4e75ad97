"""What only files of their own hold. B is the batch axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.padding import both, labelled


class Named(nn.Module):
    """Modules and parameters under any names."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        super().__init__()
        for name, each in named.items():
            (self._parameters if isinstance(each, nn.Parameter) else self._modules)[name] = each


def value_of(found: Any) -> Tensor:
    """The value that a route gives, without what its router recorded."""
    value: Tensor = found[0] if isinstance(found, tuple) else found
    return value


def with_labels(target: Tensor, real: Tensor | None, ignored: int | None, missing: bool) -> Tensor:
    """Which examples [B] of a target [B, ...] have any label that counts."""
    counts = both(labelled(target, ignored, missing), real)
    counts = torch.ones_like(target, dtype=torch.bool) if counts is None else counts
    return counts.flatten(1).any(1) if target.dim() > 1 else counts
