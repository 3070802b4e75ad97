"""What stands in the place of padding while a model learns."""

from __future__ import annotations

import torch
from torch import Tensor


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
