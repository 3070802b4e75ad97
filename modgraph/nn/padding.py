"""Padding masks and label masks of a batch. B is the batch axis."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


def valid(x: Tensor, axis: int, length: Tensor) -> Tensor:
    """A mask that broadcasts against x [B, ...]: true where the index along an axis is below the length [B]."""
    axis = axis % x.dim()
    positions = torch.arange(x.shape[axis], device=x.device)
    mask = positions < length.to(x.device).unsqueeze(-1)
    shape = [1] * x.dim()
    shape[0], shape[axis] = mask.shape
    return mask.reshape(mask.shape[0], *shape[1:])


def valid_along(x: Tensor, lengths: Mapping[int, Tensor]) -> Tensor | None:
    """A mask along several axes, each with its lengths [B]: true where `valid` is true along all of them."""
    found: Tensor | None = None
    for axis, length in lengths.items():
        found = both(found, valid(x, axis, length))
    return found


def apply_mask(x: Tensor, mask: Tensor | None, otherwise: float = 0.0) -> Tensor:
    """Fill x with `otherwise` where the mask, which broadcasts against it, is false.

    Unlike a product, this keeps infinities and NaNs in padding out of values and gradients.
    """
    return x if mask is None else x.masked_fill(~mask, otherwise)


class MaskPadding(nn.Module):
    """Zeroes x [B, ...] where the mask is false."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return apply_mask(x, mask)


def mask_labels(target: Tensor, ignore: int | None = None, missing: bool = False) -> Tensor | None:
    """A mask of the labels that count in a target [B, ...]; None if all do.

    A missing class is negative, a missing number is NaN.
    """
    if target.is_floating_point():
        return ~target.isnan() if missing else None
    counts = target >= 0 if missing else None
    if ignore is None:
        return counts
    others = target != ignore
    return others if counts is None else counts & others


def both(some: Tensor | None, others: Tensor | None) -> Tensor | None:
    """The conjunction of two masks that broadcast against each other; None is true everywhere."""
    if some is None or others is None:
        return others if some is None else some
    return some & others


def make_label_mask(target: Tensor, mask: Tensor | None, ignore: int | None, missing: bool) -> Tensor:
    """A mask of the labels that count in a target [B, ...] with a padding mask: of the target's shape."""
    counts = both(mask_labels(target, ignore, missing), mask)
    return torch.ones_like(target, dtype=torch.bool) if counts is None else counts.expand_as(target)


def has_labels(target: Tensor, mask: Tensor | None, ignore: int | None, missing: bool) -> Tensor:
    """Whether each example of a target [B, ...] has a label that counts: [B]."""
    counts = make_label_mask(target, mask, ignore, missing)
    return counts.flatten(1).any(1) if target.dim() > 1 else counts


def repeat_last(x: Tensor, axis: int, length: Tensor) -> Tensor:
    """Fill the padding of x [B, ...] along an axis with the last element before it; with zeros if the length is 0.

    Padding is then as finite as the example, and no gradient of a weight is 0 · ∞.
    """
    length = length.to(x.device)
    last = (length - 1).clamp(min=0).unsqueeze(-1)
    indices = torch.minimum(torch.arange(x.shape[axis], device=x.device), last)
    shape = [1] * x.dim()
    shape[0], shape[axis] = indices.shape
    found = x.gather(axis, indices.reshape(shape).expand_as(x))
    none = (length == 0).reshape(-1, *[1] * (x.dim() - 1))
    return found.masked_fill(none, 0)
