"""Attention of tokens to tokens, and what is learned of their positions.

Shape suffixes: N tokens, M tokens that are attended to, H heads, W numbers of a head.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.device import constant
from modgraph.nn.order import exact
from modgraph.nn.padding import cleared


class Attention(nn.Module):
    """softmax(Q Kᵀ / √W) V for each head, joined and mapped once more.

    With `kv_heads`, so many heads of keys and values, queries, keys and values have a map each; else one for all.
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
        self.rotary = None if rotary is None else Rotary(head_width, rotary)
        self.relative = None if relative is None else Relative(relative, heads, causal)
        self.out = nn.Linear(joined, width, bias=out_bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        real: tuple[Tensor | None, ...] = (None, None),
    ) -> Tensor:
        """x [..., N, D] gives the same shape, of memory [..., M, E] or of itself; mask [..., N, M] or [..., M] is zero
        where a token is not seen. No token looks at padding, which `real` [..., N, 1] tells of each operand."""
        real_keys = real[0] if memory is None else real[1]
        q, k, v = self._mapped(cleared(x, real[0]), None if memory is None else cleared(memory, real[1]))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rotary is not None:
            turns = self.rotary(q)
            q, k = turned(q, turns), turned(k, turns if memory is None else self.rotary(k))
        q, k, v = (each.transpose(-3, -2) for each in (q, k, v))
        seen = self._seen(q, k, mask, real_keys)
        bias = seen if self.relative is None else self.relative(q.shape[-2], k.shape[-2], seen)
        alone = self.causal and bias is None
        y = attend(q, k, v, bias, causal=alone, grouped=self.grouped)
        if seen is not None:
            y = y.masked_fill(~seen.any(-1, keepdim=True), 0.0)  # of nothing; left open, it differs between backends
        result: Tensor = self.out(y.transpose(-3, -2).flatten(-2))
        return result

    def _mapped(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [..., N, H, W], keys and values [..., M, H, W], of as many heads as each has."""
        if self.kv_heads is not None:
            memory, kv_heads = x if memory is None else memory, self.kv_heads
            return (
                in_heads(self.q(x), self.heads),
                in_heads(self.k(memory), kv_heads),
                in_heads(self.v(memory), kv_heads),
            )
        if memory is None:
            q, k, v = in_heads(self.qkv(x), 3, self.heads).unbind(-3)
            return q, k, v
        joined, weight, bias = self.qkv.out_features // 3, self.qkv.weight, self.qkv.bias
        of_q, of_kv = slice(None, joined), slice(joined, None)
        q = F.linear(x, weight[of_q], None if bias is None else bias[of_q])
        kv = F.linear(memory, weight[of_kv], None if bias is None else bias[of_kv])
        k, v = in_heads(kv, 2, self.heads).unbind(-3)
        return in_heads(q, self.heads), k, v

    def _seen(self, q: Tensor, k: Tensor, mask: Tensor | None, real: Tensor | None) -> Tensor | None:
        """Which tokens each sees, a mask that broadcasts against [..., H, N, M]; None where `causal` says it all."""
        found = None if real is None else real.transpose(-1, -2).unsqueeze(-3)
        if mask is not None:
            rows = mask if mask.dim() == q.dim() - 1 else mask.unsqueeze(-2)
            given = (rows != 0).unsqueeze(-3)
            found = given if found is None else found & given
        if self.causal and (found is not None or self.relative is not None):
            earlier = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
            found = earlier if found is None else found & earlier
        return found


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, grouped: bool) -> Tensor:
    """torch's fused attention for q [..., H, N, W], with outer axes merged: its kernels and its exporter take one."""
    outer = q.shape[:-3]
    if len(outer) > 1:
        q, k, v = (each.flatten(0, -4) for each in (q, k, v))
        if bias is not None and bias.dim() > 4:
            bias = bias.expand(*outer, *bias.shape[-3:]).flatten(0, -4)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal, enable_gqa=grouped)
    return y.reshape(*outer, *y.shape[1:]) if len(outer) > 1 else y


def in_heads(x: Any, *parts: int) -> Tensor:
    """The last axis cut into so many parts, of parts."""
    found: Tensor = x.unflatten(-1, (*parts, -1))
    return found


class Rotary(nn.Module):
    """By which angles pairs of numbers of a head are turned at each place: place · base^(−2i/W) for pair i."""

    def __init__(self, width: int, base: float) -> None:
        super().__init__()
        half = width // 2
        self.speeds = [base ** (-at / half) for at in range(half)]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [N, 1, W / 2] for x [..., N, H, W], places counted from 0."""
        angle: Any = {"dtype": exact(x), "device": x.device}
        places = torch.arange(x.shape[-3], **angle)
        angles = places[:, None, None] * constant(self.speeds, **angle)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def turned(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """x [..., N, H, W] with number i and that half a head further turned as a pair (Su et al., RoFormer, 2021), which
    is how Llama's weights lie."""
    cos, sin = turns
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Relative(nn.Module):
    """A learned number for each head and bucket of distances, added to the scores (Raffel et al., T5, 2020)."""

    def __init__(self, buckets: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        self.table = [bucket_of(distance, buckets if causal else buckets // 2) for distance in range(FARTHEST + 1)]
        self.later = 0 if causal else buckets // 2

    def forward(self, N: int, M: int, seen: Tensor | None) -> Tensor:
        """What is added to scores [..., H, N, M]: the least number where a token is not seen."""
        device = self.weight.device
        back = torch.arange(N, device=device).unsqueeze(-1) - torch.arange(M, device=device)
        table = constant(self.table, torch.int64, device)
        bucket = table[back.abs().clamp(max=FARTHEST)] + self.later * (back < 0)
        bias = self.weight[bucket].permute(2, 0, 1).unsqueeze(0)
        return bias if seen is None else bias.masked_fill(~seen, torch.finfo(bias.dtype).min)


FARTHEST = 128  # from here on all distances share a bucket


def bucket_of(distance: int, buckets: int) -> int:
    """Half of the buckets are a distance each, the others grow with its logarithm up to `FARTHEST`."""
    exact = buckets // 2
    if distance < exact:
        return distance
    share = math.log(distance / exact) / math.log(FARTHEST / exact)
    return min(exact + int(share * (buckets - exact)), buckets - 1)


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
