"""What is padding in the operands of a node, and what is put in its place while a model learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from modgraph.ir import Result


@dataclass(frozen=True)
class Padding:
    """Axes of an operand [B, ...] that hold padding, counted from 1, and the results that tell its lengths."""

    lengths: Mapping[int, Result]
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """No node is called as a mask is, since no name has a space."""
        name = f"real {', '.join(f'{axis} {length}' for axis, length in self.lengths.items())}"
        object.__setattr__(self, "name", name)


def refilled(x: Tensor, axis: int, length: Tensor) -> Tensor:
    """x [B, ...] with the last real place along an axis once more in every place of padding, zeros if none is real.

    So whatever stands in padding is as finite as the example itself, and no gradient of a weight is 0 · ∞.
    """
    length = length.to(x.device)
    last = (length - 1).clamp(min=0).unsqueeze(-1)
    indices = torch.minimum(torch.arange(x.shape[axis], device=x.device), last)
    shape = [1] * x.dim()
    shape[0], shape[axis] = indices.shape
    found = x.gather(axis, indices.reshape(shape).expand_as(x))
    none = (length == 0).reshape(-1, *[1] * (x.dim() - 1))
    return found.masked_fill(none, 0)
