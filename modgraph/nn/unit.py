"""Vectors of length one."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

SMALL = 1e-8


def unit(x: Tensor, axis: int = -1) -> Tensor:
    """Vectors of length one along an axis; the zero vector stays."""
    return F.normalize(x, dim=axis, eps=SMALL)
