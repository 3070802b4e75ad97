"""Attention among tokens, relative positions, position embeddings and the class token.

Axis letters: N tokens (queries), M memory tokens (keys), H heads, W width of a head, D width of x, E of memory.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.device import constant
from modgraph.nn.padding import apply_mask
from modgraph.nn.rotary import Rotary, rotate


class Attention(nn.Module):
    """softmax(Q Kᵀ / √W) V for each head, concatenated and projected.

    With `kv_heads` (grouped-query attention), queries, keys and values have a projection each; otherwise they share
    one.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        memory_width: int,
        head_width: int,
        kv_heads: int | None = None,
        bias: bool = True,
        out_bias: bool = True,
        causal: bool = False,
        rotary: float | None = None,
        relative: int | None = None,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.causal = heads, kv_heads, causal
        self.grouped = kv_heads not in (None, heads)
        joined = heads * head_width
        if kv_heads is None:
            self.qkv = nn.Linear(width, 3 * joined, bias=bias)
        else:
            self.q = nn.Linear(width, joined, bias=bias)
            self.k = nn.Linear(memory_width, kv_heads * head_width, bias=bias)
            self.v = nn.Linear(memory_width, kv_heads * head_width, bias=bias)
        self.q_norm = nn.RMSNorm(head_width, eps=1e-6) if qk_norm else None
        self.k_norm = nn.RMSNorm(head_width, eps=1e-6) if qk_norm else None
        self.rotary = None if rotary is None else Rotary(head_width, -3, rotary)
        self.relative = None if relative is None else Relative(relative, heads, causal)
        self.out = nn.Linear(joined, width, bias=out_bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        attn_mask: Tensor | None = None,
        mask: tuple[Tensor | None, ...] = (None, None),
    ) -> Tensor:
        """x [..., N, D] attends to memory [..., M, E], or to itself, and gives [..., N, D].

        attn_mask [..., N, M] or [..., M] is zero where a token may not attend. `mask` has the padding mask of each
        operand, [..., N, 1] and [..., M, 1]: no token attends to padding.
        """
        key_mask = mask[0] if memory is None else mask[1]
        q, k, v = self._project(apply_mask(x, mask[0]), None if memory is None else apply_mask(memory, mask[1]))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rotary is not None:
            rotation = self.rotary.rotation(q)
            q, k = rotate(q, rotation), rotate(k, rotation if memory is None else self.rotary.rotation(k))
        q, k, v = (each.transpose(-3, -2) for each in (q, k, v))
        visible = self._merge_masks(q, k, attn_mask, key_mask)
        bias = visible if self.relative is None else self.relative(q.shape[-2], k.shape[-2], visible)
        y = attend(q, k, v, bias, causal=self.causal and bias is None, grouped=self.grouped)
        if visible is not None:
            y = y.masked_fill(~visible.any(-1, keepdim=True), 0.0)  # backends disagree where no key is visible
        result: Tensor = self.out(y.transpose(-3, -2).flatten(-2))
        return result

    def _project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [..., N, H, W], keys and values [..., M, H or kv_heads, W]."""
        if self.kv_heads is not None:
            memory, kv_heads = x if memory is None else memory, self.kv_heads
            return (
                split_heads(self.q(x), self.heads),
                split_heads(self.k(memory), kv_heads),
                split_heads(self.v(memory), kv_heads),
            )
        if memory is None:
            q, k, v = split_heads(self.qkv(x), 3, self.heads).unbind(-3)
            return q, k, v
        joined, weight, bias = self.qkv.out_features // 3, self.qkv.weight, self.qkv.bias
        of_q, of_kv = slice(None, joined), slice(joined, None)
        q = F.linear(x, weight[of_q], None if bias is None else bias[of_q])
        kv = F.linear(memory, weight[of_kv], None if bias is None else bias[of_kv])
        k, v = split_heads(kv, 2, self.heads).unbind(-3)
        return split_heads(q, self.heads), k, v

    def _merge_masks(self, q: Tensor, k: Tensor, attn_mask: Tensor | None, key_mask: Tensor | None) -> Tensor | None:
        """Combine all masks into one that broadcasts against [..., H, N, M]; None where `is_causal` suffices."""
        found = None if key_mask is None else key_mask.transpose(-1, -2).unsqueeze(-3)
        if attn_mask is not None:
            rows = attn_mask if attn_mask.dim() == q.dim() - 1 else attn_mask.unsqueeze(-2)
            given = (rows != 0).unsqueeze(-3)
            found = given if found is None else found & given
        if self.causal and (found is not None or self.relative is not None):
            earlier = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
            found = earlier if found is None else found & earlier
        return found


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, grouped: bool) -> Tensor:
    """Call torch's fused attention on q [..., H, N, W]. Its kernels and exporter take one outer axis, so merge them."""
    outer = q.shape[:-3]
    if len(outer) > 1:
        q, k, v = (each.flatten(0, -4) for each in (q, k, v))
        if bias is not None and bias.dim() > 4:
            bias = bias.expand(*outer, *bias.shape[-3:]).flatten(0, -4)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal, enable_gqa=grouped)
    return y.reshape(*outer, *y.shape[1:]) if len(outer) > 1 else y


def split_heads(x: Any, *parts: int) -> Tensor:
    """Unflatten the last axis into `parts` and the remaining width."""
    found: Tensor = x.unflatten(-1, (*parts, -1))
    return found


class Relative(nn.Module):
    """A learned bias for each head and bucket of distances, added to the scores (Raffel et al., T5, 2020)."""

    def __init__(self, buckets: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        self.table = [bucket_of(distance, buckets if causal else buckets // 2) for distance in range(FARTHEST + 1)]
        self.later = 0 if causal else buckets // 2

    def forward(self, N: int, M: int, visible: Tensor | None) -> Tensor:
        """The bias [1, H, N, M], broadcast against `visible`; the least finite number where that is false."""
        device = self.weight.device
        back = torch.arange(N, device=device).unsqueeze(-1) - torch.arange(M, device=device)
        table = constant(self.table, torch.int64, device)
        bucket = table[back.abs().clamp(max=FARTHEST)] + self.later * (back < 0)
        bias = self.weight[bucket].permute(2, 0, 1).unsqueeze(0)
        return bias if visible is None else bias.masked_fill(~visible, torch.finfo(bias.dtype).min)


FARTHEST = 128  # longer distances share a bucket


def bucket_of(distance: int, buckets: int) -> int:
    """The bucket of a distance. Half of the buckets hold one distance each; the others grow logarithmically."""
    exact = buckets // 2
    if distance < exact:
        return distance
    share = math.log(distance / exact) / math.log(FARTHEST / exact)
    return min(exact + int(share * (buckets - exact)), buckets - 1)


class ClassToken(nn.Module):
    """Prepends a learned token: [..., N, D] to [..., N + 1, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        token = self.weight.expand(*x.shape[:-2], 1, -1)
        return torch.cat((token, x), dim=-2)


class Position(nn.Module):
    """Adds a learned vector to each position of x [..., N, D]."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(positions, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[: x.shape[-2]]
