"""The k largest values."""

from __future__ import annotations

import torch
from torch import Tensor


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """True at the k largest along the last axis, of equal ones the first: k rounds of argmax."""
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    for _ in range(k):
        best = scores.masked_fill(chosen, -torch.inf).argmax(-1, keepdim=True)
        chosen = chosen.scatter(-1, best, True)
    return chosen
