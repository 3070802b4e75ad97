"""Padding along a symbolic axis: which positions of a batch are real. B is the batch axis."""

from __future__ import annotations

import torch
from torch import Tensor


def valid(x: Tensor, axis: int, length: Tensor | None) -> Tensor | None:
    """A boolean mask that broadcasts against x: true where the position along `axis` is below the example's length.

    `length` has the shape [B], B the first axis of x; None means that all positions are real.
    """
    if length is None:
        return None
    axis = axis % x.dim()
    positions = torch.arange(x.shape[axis], device=x.device)
    mask = positions < length.to(x.device).unsqueeze(-1)
    shape = [1] * x.dim()
    shape[0], shape[axis] = mask.shape
    return mask.reshape(-1, *shape[1:])


def without_padding(x: Tensor, axis: int, length: Tensor | None) -> Tensor:
    """x with zeros in the padding along `axis`: what stands there, inf and NaN too, reaches no value or gradient."""
    return cleared(x, valid(x, axis, length))


def cleared(x: Tensor, real: Tensor | None) -> Tensor:
    """x with zeros where `real`, which broadcasts against it, is false; None means that all is real."""
    return x if real is None else x.masked_fill(~real, 0)
