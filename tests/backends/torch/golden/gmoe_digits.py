"""gmoe_digits(classes=10, dim=32, depth=4, heads=4, experts=6, k=1, sparse=[1, 3], width=16, noise=1.0,
    balance=0.01, size=16, patch=4)

Written by modgraph 0.1.0; it needs torch alone, and takes modgraph's weights:
model = GmoeDigits(); model.load_state_dict(safetensors.torch.load_file("weights.safetensors")); output = model(image)
B is the axis of examples, "..." stands for any axes before those of one message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, dataclass_transform

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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
        kv_heads: int | None=None,
        bias: bool=True,
        out_bias: bool=True,
        causal: bool=False,
        rotary: float | None=None,
        relative: int | None=None,
        qk_norm: bool=False,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.causal = (heads, kv_heads, causal)
        self.grouped = kv_heads not in (None, heads)
        joined = heads * head_width
        if kv_heads is None:
            self.qkv = nn.Linear(width, 3 * joined, bias=bias)
        else:
            self.q = nn.Linear(width, joined, bias=bias)
            self.k = nn.Linear(memory_width, kv_heads * head_width, bias=bias)
            self.v = nn.Linear(memory_width, kv_heads * head_width, bias=bias)
        self.q_norm = nn.RMSNorm(head_width, eps=1e-06) if qk_norm else None
        self.k_norm = nn.RMSNorm(head_width, eps=1e-06) if qk_norm else None
        self.rotary = None if rotary is None else Rotary(head_width, rotary)
        self.relative = None if relative is None else Relative(relative, heads, causal)
        self.out = nn.Linear(joined, width, bias=out_bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None=None,
        mask: Tensor | None=None,
        real: tuple[Tensor | None, ...]=(None, None),
    ) -> Tensor:
        """x [..., N, D] gives the same shape, of memory [..., M, E] or of itself; mask [..., N, M] or [..., M] is zero
        where a token is not seen. No token looks at padding, which `real` [..., N, 1] tells of each operand."""
        real_keys = real[0] if memory is None else real[1]
        q, k, v = self._mapped(cleared(x, real[0]), None if memory is None else cleared(memory, real[1]))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = (self.q_norm(q), self.k_norm(k))
        if self.rotary is not None:
            turns = self.rotary(q)
            q, k = (turned(q, turns), turned(k, turns if memory is None else self.rotary(k)))
        q, k, v = (each.transpose(-3, -2) for each in (q, k, v))
        seen = self._seen(q, k, mask, real_keys)
        bias = seen if self.relative is None else self.relative(q.shape[-2], k.shape[-2], seen)
        alone = self.causal and bias is None
        y = attend(q, k, v, bias, causal=alone, grouped=self.grouped)
        if seen is not None:
            y = y.masked_fill(~seen.any(-1, keepdim=True), 0.0)
        return self.out(y.transpose(-3, -2).flatten(-2))

    def _mapped(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [..., N, H, W], keys and values [..., M, H, W], of as many heads as each has."""
        if self.kv_heads is not None:
            memory, kv_heads = (x if memory is None else memory, self.kv_heads)
            return (
                in_heads(self.q(x), self.heads),
                in_heads(self.k(memory), kv_heads),
                in_heads(self.v(memory), kv_heads),
            )
        if memory is None:
            q, k, v = in_heads(self.qkv(x), 3, self.heads).unbind(-3)
            return (q, k, v)
        joined, weight, bias = (self.qkv.out_features // 3, self.qkv.weight, self.qkv.bias)
        of_q, of_kv = (slice(None, joined), slice(joined, None))
        q = F.linear(x, weight[of_q], None if bias is None else bias[of_q])
        kv = F.linear(memory, weight[of_kv], None if bias is None else bias[of_kv])
        k, v = in_heads(kv, 2, self.heads).unbind(-3)
        return (in_heads(q, self.heads), k, v)

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


def in_heads(x: Any, *parts: int) -> Tensor:
    """The last axis cut into so many parts, of parts."""
    return x.unflatten(-1, (*parts, -1))


def turned(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """x [..., N, H, W] with number i and that half a head further turned as a pair (Su et al., RoFormer, 2021), which
    is how Llama's weights lie."""
    cos, sin = turns
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def cleared(x: Tensor, real: Tensor | None, otherwise: float=0.0) -> Tensor:
    """x where `real`, a mask that broadcasts against it, is true. What stands in padding, be it infinite or no number,
    reaches neither values nor gradients."""
    return x if real is None else x.masked_fill(~real, otherwise)


class Relative(nn.Module):
    """A learned number for each head and bucket of distances, added to the scores (Raffel et al., T5, 2020)."""

    def __init__(self, buckets: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        self.table = [
            bucket_of(distance, buckets if causal else buckets // 2) for distance in range(FARTHEST + 1)
        ]
        self.later = 0 if causal else buckets // 2

    def forward(self, N: int, M: int, seen: Tensor | None) -> Tensor:
        """What is added to scores [..., H, N, M]: the least number where a token is not seen."""
        device = self.weight.device
        back = torch.arange(N, device=device).unsqueeze(-1) - torch.arange(M, device=device)
        table = constant(self.table, torch.int64, device)
        bucket = table[back.abs().clamp(max=FARTHEST)] + self.later * (back < 0)
        bias = self.weight[bucket].permute(2, 0, 1).unsqueeze(0)
        return bias if seen is None else bias.masked_fill(~seen, torch.finfo(bias.dtype).min)


FARTHEST = 128


def bucket_of(distance: int, buckets: int) -> int:
    """Half of the buckets are a distance each, the others grow with its logarithm up to `FARTHEST`."""
    exact = buckets // 2
    if distance < exact:
        return distance
    share = math.log(distance / exact) / math.log(FARTHEST / exact)
    return min(exact + int(share * (buckets - exact)), buckets - 1)


def exact(x: Tensor) -> torch.dtype:
    """A type that holds whole numbers as they are, where that of x, of two bytes, would round them."""
    return x.dtype if x.dtype.itemsize >= 4 else torch.float32


def constant(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Given numbers [n] as a tensor."""
    if device.type != "cuda" or torch.compiler.is_compiling():
        return torch.tensor(values, dtype=dtype, device=device)
    return sent(torch.tensor(values, dtype=dtype), device)


def sent(x: Tensor, device: torch.device, dtype: torch.dtype | None=None) -> Tensor:
    """A tensor on a device, of another type where one is named."""
    x = x if dtype is None else x.to(dtype=dtype)
    if device.type != "cuda" or x.device.type != "cpu":
        return x.to(device)
    return x.pin_memory().to(device, non_blocking=True)


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
        return (angles.cos().to(x.dtype), angles.sin().to(x.dtype))


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, grouped: bool) -> Tensor:
    """torch's fused attention for q [..., H, N, W], with outer axes merged: its kernels and its exporter take one."""
    outer = q.shape[:-3]
    if len(outer) > 1:
        q, k, v = (each.flatten(0, -4) for each in (q, k, v))
        if bias is not None and bias.dim() > 4:
            bias = bias.expand(*outer, *bias.shape[-3:]).flatten(0, -4)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal, enable_gqa=grouped)
    return y.reshape(*outer, *y.shape[1:]) if len(outer) > 1 else y


class Position(nn.Module):
    """Adds a learned vector to each position."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(positions, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[:x.shape[-2]]


class ClassToken(nn.Module):
    """Puts a learned token in front: [..., N, D] to [..., N + 1, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        token = self.weight.expand(*x.shape[:-2], 1, -1)
        return torch.cat((token, x), dim=-2)


class _Images(nn.Module):
    """Lets a layer that knows [B, C, H, W] take any outer axes."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 4:
            plain: Tensor = super().forward(x)
            return plain
        result: Tensor = super().forward(x.reshape(-1, *x.shape[-3:]))
        return result.reshape(*x.shape[:-3], *result.shape[1:])


class Conv2d(_Images, nn.Conv2d):
    """torch's convolution."""


class PatchEmbed(Conv2d):
    """[..., C, H, W] to [..., patches, width]."""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__(channels, width, patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).flatten(-2).transpose(-1, -2)


def squared_cv(x: Tensor) -> Tensor:
    """Variance (unbiased) over squared mean along the last axis; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    least = 2.0 ** 20 * torch.finfo(x.dtype).tiny
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=least)


def by_choice(x: Tensor, gates: Tensor, choice: Tensor, modules: Any) -> Tensor:
    """Each token's sum of gate_j f_j(x) over the modules that are chosen for it; each runs on the tokens that chose it.

    x [..., message], gates and choice [..., M] give [..., result].
    """
    x_S, gates_SM, chosen_SM = flat(x, gates, choice)
    tokens_of = [chosen_SM[:, j].nonzero().squeeze(1) for j in range(len(modules))]
    values = torch.cat([modules[j](x_S.index_select(0, at)) for j, at in enumerate(tokens_of)])
    weight = torch.cat([gates_SM[:, j].index_select(0, at) for j, at in enumerate(tokens_of)])
    found = added(values, weight, torch.cat(tokens_of), x_S.shape[0])
    return found.reshape(*gates.shape[:-1], *found.shape[1:])


def added(values_E: Tensor, weight_E: Tensor, token_E: Tensor, tokens: int) -> Tensor:
    """The weighted sum of the values of all edges to each token [S, result]."""
    weighted = values_E.flatten(1) * weight_E.unsqueeze(-1)
    total = weighted.new_zeros(tokens, weighted.shape[1]).index_add(0, token_E, weighted)
    return total.reshape(-1, *values_E.shape[1:])


def flat(tokens: Tensor, gates: Tensor, choice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens of all examples [S, message], and their gates and choices [S, M]."""
    M = gates.shape[-1]
    return (tokens.reshape(-1, *tokens.shape[gates.dim() - 1:]), gates.reshape(-1, M), choice.reshape(-1, M))


@dataclass_transform(eq_default=False)
class Layer(nn.Module):
    """A module whose annotated fields are what its constructor takes."""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        super().__init__()


class AlongAxis(Layer):
    axis: int


class KthLargest(AlongAxis):
    """The k-th largest value, padding left out; of fewer the least, of none zero."""
    k: int

    def forward(self, x: Tensor, real: Tensor | None=None) -> Tensor:
        order = sorted_places(cleared(x.detach(), real, -torch.inf), self.axis, descending=True)
        if real is None:
            last = order.narrow(self.axis, min(self.k, x.shape[self.axis]) - 1, 1).clone()
            return x.gather(self.axis, last).squeeze(self.axis)
        count = real.sum(self.axis, keepdim=True)
        at = (count.clamp(max=self.k) - 1).clamp(min=0).expand(order.narrow(self.axis, 0, 1).shape)
        found = x.gather(self.axis, order.gather(self.axis, at)).squeeze(self.axis)
        return torch.where(real.any(self.axis), found, 0.0)


def sorted_places(x: Tensor, axis: int, descending: bool=False) -> Tensor:
    """The places along an axis in the order of their values, of equal ones the first in front.

    ONNX has no stable sort, but its TopK, which any sort becomes, takes the first of equal values.
    """
    return x.argsort(dim=axis, descending=descending, stable=True)


class TopKMask(AlongAxis):
    """One at the k largest along an axis, of equal ones the first."""
    k: int

    def forward(self, x: Tensor, real: Tensor | None=None) -> Tensor:
        """x of any shape gives the same shape; padding is never chosen."""
        values = cleared(x.detach(), real, -torch.inf)
        chosen = top_k_mask(values.movedim(self.axis, -1), self.k).movedim(-1, self.axis)
        return cleared(chosen.to(x.dtype), real)


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """True at the k largest along the last axis, of equal ones the first: k rounds of argmax."""
    chosen, left = (torch.zeros_like(scores, dtype=torch.bool), scores)
    for round_ in range(k):
        left = left if round_ == 0 else scores.masked_fill(chosen, -torch.inf)
        chosen = chosen.scatter(-1, left.argmax(-1, keepdim=True), True)
    return chosen


class NormalNoise(Layer):
    """Normal noise of a deviation, a number or a value, in training; nothing is drawn where that is the number zero."""
    deviation: float | None = None

    def forward(self, x: Tensor, deviation: Tensor | None=None) -> Tensor:
        """x of any shape, and a deviation of the same, give that shape."""
        if not self.training or self.deviation == 0:
            return torch.zeros_like(x)
        return standard_normal(x) * (deviation if self.deviation is None else self.deviation)


def standard_normal(like: Tensor) -> Tensor:
    """Normal noise of a tensor's shape, type and device; the same for an example whichever process has it."""
    return noise_like(like, torch.randn)


def noise_like(like: Tensor, draw: Callable[..., Tensor]) -> Tensor:
    """Noise of a tensor's shape, type and device."""
    return draw(like.shape, dtype=like.dtype, device=like.device)


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch_embed = PatchEmbed(1, width=32, patch=4)
        self.class_token = ClassToken(32)
        self.position = Position(17, width=32)
        nn.init.normal_(self.class_token.weight, 0, 0.02)
        nn.init.normal_(self.position.weight, 0, 0.02)

    def forward(self, x):
        return self.position(self.class_token(self.patch_embed(x)))


class Ffn(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(32, 128)
        self.fc2 = nn.Linear(128, 32)

    def forward(self, x):
        fc1 = self.fc1(x)  # [B, 17, 128]
        y = F.gelu(fc1)  # [B, 17, 128]
        return self.fc2(y)


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(32, eps=1e-06)
        self.attn = Attention(32, heads=4, memory_width=32, head_width=8)
        self.norm2 = nn.LayerNorm(32, eps=1e-06)
        self.mlp = Ffn()
        nn.init.uniform_(self.attn.qkv.weight, -0.17677669529663687, 0.17677669529663687)
        nn.init.zeros_(self.attn.qkv.bias)
        nn.init.uniform_(self.attn.out.weight, -0.17677669529663687, 0.17677669529663687)
        nn.init.zeros_(self.attn.out.bias)

    def forward(self, x):
        attn = self.attn(self.norm1(x))  # [B, 17, 32]
        x = x + attn  # [B, 17, 32]
        norm = self.norm2(x)  # [B, 17, 32]
        fc = self.mlp(norm)  # [B, 17, 32]
        return x + fc


def normal_cdf(x):
    return 0.5 * (1.0 + (x / 1.4142135623730951).erf())


class KBySoftmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.normal_noise = NormalNoise(0.16666666666666666)
        self.top_k = TopKMask(-1, k=1)
        self.kth_largest = KthLargest(-1, k=1)

    def forward(self, x):
        noisy = self.normal_noise(x)  # [B, 17, 6]
        noisy = x + noisy  # [B, 17, 6]
        chosen = self.top_k(noisy)  # [B, 17, 6]
        shares = noisy.softmax(-1)  # [B, 17, 6]
        likely = (x - self.kth_largest(noisy).unsqueeze(-1)) / 0.16666666666666666  # [B, 17, 6]
        return shares * chosen, noisy, chosen, normal_cdf(likely)


class Ffn2(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(32, 128)
        self.fc2 = nn.Linear(128, 32)

    def forward(self, x):
        fc1 = self.fc1(x)  # [..., 128]
        y = F.gelu(fc1)  # [..., 128]
        return self.fc2(y)


class Expert(nn.Module):
    """One module of expert: [..., 32] to [..., 32]."""

    def __init__(self):
        super().__init__()
        self.ffn = Ffn2()

    def forward(self, x):
        return self.ffn(x)


class Cosine(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(
            nn.init.uniform_(torch.empty(16, 32), -0.17677669529663687, 0.17677669529663687)
        )
        self.bias = nn.Parameter(nn.init.uniform_(torch.empty(16), -0.17677669529663687, 0.17677669529663687))
        self.keys = nn.Parameter(nn.init.normal_(torch.empty(16, 6), 0, 0.01))
        self.scale = nn.Parameter(nn.init.constant_(torch.empty(()), 0.6931471805599453))
        self.k_by_softmax = KBySoftmax()

    def forward(self, x, expert):
        query = F.normalize(F.linear(x, self.weight) + self.bias.unsqueeze(-2), dim=-1, eps=1e-08)
        scores = F.linear(query, F.normalize(self.keys, dim=-2, eps=1e-08).transpose(-2, -1))  # [B, 17, 6]
        scores = scores * self.scale.clamp(max=4.605170185988092).exp()  # [B, 17, 6]
        gates, noisy, chosen, y = self.k_by_softmax(scores)
        return by_choice(x, gates, chosen, expert), scores.softmax(-1), y


class Blocks2(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(32, eps=1e-06)
        self.attn = Attention(32, heads=4, memory_width=32, head_width=8)
        self.norm2 = nn.LayerNorm(32, eps=1e-06)
        self.expert = nn.ModuleList([Expert() for _ in range(6)])
        self.gate = Cosine()
        nn.init.uniform_(self.attn.qkv.weight, -0.17677669529663687, 0.17677669529663687)
        nn.init.zeros_(self.attn.qkv.bias)
        nn.init.uniform_(self.attn.out.weight, -0.17677669529663687, 0.17677669529663687)
        nn.init.zeros_(self.attn.out.bias)

    def forward(self, x):
        attn = self.attn(self.norm1(x))  # [B, 17, 32]
        x = x + attn  # [B, 17, 32]
        y, probabilities, y_2 = self.gate(self.norm2(x), self.expert)
        return x + y, probabilities, y_2


class GmoeDigits(nn.Module):
    """image: float[1, 16, 16] to logits: float[10]."""

    def __init__(self):
        super().__init__()
        self.patches = Patches()
        self.blocks = nn.ModuleList([Blocks(), Blocks2(), Blocks(), Blocks2()])
        self.norm = nn.LayerNorm(32, eps=1e-06)
        self.head = nn.Linear(32, 10)

    def forward(self, image, label=None):
        """The output, and the losses by name where targets are given."""
        position = self.patches(image)  # [B, 17, 32]
        x = self.blocks[0](position)  # [B, 17, 32]
        x, probabilities, y = self.blocks[1](x)
        x = self.blocks[2](x)  # [B, 17, 32]
        x, probabilities_2, y_2 = self.blocks[3](x)
        norm = self.norm(x)  # [B, 17, 32]
        logits = norm.select(-2, 0)  # [B, 32]
        head = self.head(logits)  # [B, 10]
        if label is None:
            return head
        importance_load = squared_cv(probabilities.flatten(0, -2).sum(0)) + squared_cv(
            probabilities_2.flatten(0, -2).sum(0)
        )
        importance_load_2 = squared_cv(y.flatten(0, -2).sum(0)) + squared_cv(y_2.flatten(0, -2).sum(0))  # []
        losses = {
            "loss.cross_entropy": F.cross_entropy(head, label.long(), reduction="none").mean(),
            "loss.importance_load": (0.005 * (importance_load + importance_load_2)).mean(),
        }
        return head, losses
