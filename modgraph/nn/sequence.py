"""Layers on tokens [..., N, D]."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.padding import cleared


class Attention(nn.Module):
    """Multi-head self-attention: softmax(Q Kᵀ / √d) V for each head, joined and mapped once more."""

    def __init__(self, width: int, heads: int, bias: bool = True, causal: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """x [..., N, D] gives the same shape; no token looks at padding, which `real` [..., N, 1] tells."""
        x, mask = cleared(x, real), None
        if real is not None:
            mask = real.transpose(-1, -2).unsqueeze(-3)
            if self.causal:
                mask = mask & torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device).tril()
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).transpose(-4, -2).unbind(-3)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal and mask is None)
        if mask is not None:
            y = y.masked_fill(~mask.any(-1, keepdim=True), 0.0)  # of nothing; left open, it differs between backends
        result: Tensor = self.out(y.transpose(-3, -2).flatten(-2))
        return result


class ClassToken(nn.Module):
    """Puts a learned token in front: [..., N, D] to [..., N + 1, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        token = self.weight.expand(*x.shape[:-2], 1, -1)
        return torch.cat((token, x), dim=-2)


class Position(nn.Module):
    """Adds a learned vector to each position."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(positions, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[: x.shape[-2]]


class Select(nn.Module):
    """One token: [..., N, D] to [..., D]."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index

    def forward(self, x: Tensor) -> Tensor:
        return x.select(-2, self.index)
