"""Random numbers of training, all drawn here."""

from __future__ import annotations

import torch
from torch import Tensor


def standard_normal(like: Tensor) -> Tensor:
    """Independent draws from N(0, 1), in the shape and type of a tensor."""
    return torch.randn_like(like)
