"""Keys of tokens, t = Wa s + ba, and their cosines with vectors of modules."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

SMALL = 1e-8


def unit(x: Tensor, axis: int = -1) -> Tensor:
    """Vectors of length one along an axis; the zero vector stays."""
    return F.normalize(x, dim=axis, eps=SMALL)


class Keys(nn.Module):
    """The map from tokens [..., D] to keys [..., V]."""

    def __init__(self, width_in: int, width: int, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width_in))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def keys(self, tokens: Tensor) -> Tensor:
        """Unit vectors along t_i: [..., D] to [..., V]."""
        return unit(F.linear(tokens, self.weight, self.bias))

    def cosines(self, tokens: Tensor) -> Callable[[Tensor], Tensor]:
        """A function from vectors v [..., M, V] to the cosines of all pairs t_i, v_j: [..., N, M].

        Where tokens are narrower than keys, t is never made: t·v = s·(Waᵀ v), and |t|² = sᵀ (Waᵀ Wa) s.
        """
        if tokens.shape[-1] >= self.weight.shape[0]:
            keys = self.keys(tokens)
            return lambda vectors: keys @ unit(vectors).transpose(-1, -2)
        bias = self.weight.new_zeros(self.weight.shape[0]) if self.bias is None else self.bias
        gram = self.weight.T @ self.weight
        squared = ((tokens @ gram + 2 * (bias @ self.weight)) * tokens).sum(-1, keepdim=True) + bias @ bias
        size = squared.clamp(min=SMALL**2).sqrt()

        def cosines(vectors: Tensor) -> Tensor:
            along = unit(vectors)
            products = tokens @ (along @ self.weight).transpose(-1, -2)
            return (products + (along @ bias).unsqueeze(-2)) / size

        return cosines
