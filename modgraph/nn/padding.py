"""Padding along a symbolic axis: which places of a batch are real. B is the batch axis."""

from __future__ import annotations

import torch
from torch import Tensor


def valid(x: Tensor, axis: int, length: Tensor | None) -> Tensor | None:
    """A boolean mask that broadcasts against x: true where the place along `axis` is below the example's length.

    `length` has the shape [B], B the first axis of x; None means that all places are real.
    """
    if length is None:
        return None
    axis = axis % x.dim()
    places = torch.arange(x.shape[axis], device=x.device)
    mask = places < length.to(x.device).unsqueeze(-1)
    shape = [1] * x.dim()
    shape[0], shape[axis] = mask.shape
    return mask.reshape(-1, *shape[1:])
