"""Masks of a batch: which places are no padding, and which labels count. B is the batch axis."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


def valid(x: Tensor, axis: int, length: Tensor) -> Tensor:
    """A mask that broadcasts against x [B, ...]: true where the place along an axis is below the length [B]."""
    axis = axis % x.dim()
    positions = torch.arange(x.shape[axis], device=x.device)
    mask = positions < length.to(x.device).unsqueeze(-1)
    shape = [1] * x.dim()
    shape[0], shape[axis] = mask.shape
    return mask.reshape(-1, *shape[1:])


def valid_along(x: Tensor, lengths: Mapping[int, Tensor]) -> Tensor | None:
    """The same along several axes, each with lengths of its own: true where a place is real along all of them."""
    found: Tensor | None = None
    for axis, length in lengths.items():
        found = both(found, valid(x, axis, length))
    return found


def cleared(x: Tensor, real: Tensor | None, otherwise: float = 0.0) -> Tensor:
    """x where `real`, a mask that broadcasts against it, is true. What stands in padding, be it infinite or no number,
    reaches neither values nor gradients."""
    return x if real is None else x.masked_fill(~real, otherwise)


class MaskPadding(nn.Module):
    """x [B, ...], zero where the mask `real` is false."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return cleared(x, real)


def labelled(target: Tensor, ignore: int | None = None, missing: bool = False) -> Tensor | None:
    """Which places of a target [B, ...] hold a label that counts; None where all do.

    A class that is missing is negative, a number that is missing is not a number.
    """
    if target.is_floating_point():
        return ~target.isnan() if missing else None
    counts = target >= 0 if missing else None
    if ignore is None:
        return counts
    others = target != ignore
    return others if counts is None else counts & others


def both(some: Tensor | None, others: Tensor | None) -> Tensor | None:
    """What is true in two masks that broadcast against each other; None is true everywhere."""
    if some is None or others is None:
        return others if some is None else some
    return some & others


def with_labels(target: Tensor, real: Tensor | None, ignore: int | None, missing: bool) -> Tensor:
    """Which examples [B] of a target [B, ...] have any label that counts, where it is `real`."""
    counts = both(labelled(target, ignore, missing), real)
    counts = torch.ones_like(target, dtype=torch.bool) if counts is None else counts
    return counts.flatten(1).any(1) if target.dim() > 1 else counts


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
