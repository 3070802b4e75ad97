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
        self.rotary = None if rotary is None else Rotary(head_width, -3, rotary)
        self.relative = None if relative is None else Relative(relative, heads, causal)
        self.out = nn.Linear(joined, width, bias=out_bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None=None,
        attn_mask: Tensor | None=None,
        mask: tuple[Tensor | None, ...]=(None, None),
    ) -> Tensor:
        """x [..., N, D] attends to memory [..., M, E], or to itself, and gives [..., N, D].

        attn_mask [..., N, M] or [..., M] is zero where a token may not attend. `mask` has the padding mask of each
        operand, [..., N, 1] and [..., M, 1]: no token attends to padding.
        """
        key_mask = mask[0] if memory is None else mask[1]
        q, k, v = self._project(apply_mask(x, mask[0]), None if memory is None else apply_mask(memory, mask[1]))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = (self.q_norm(q), self.k_norm(k))
        if self.rotary is not None:
            rotation = self.rotary.rotation(q)
            q, k = (rotate(q, rotation), rotate(k, rotation if memory is None else self.rotary.rotation(k)))
        q, k, v = (each.transpose(-3, -2) for each in (q, k, v))
        visible = self._merge_masks(q, k, attn_mask, key_mask)
        bias = visible if self.relative is None else self.relative(q.shape[-2], k.shape[-2], visible)
        y = attend(q, k, v, bias, causal=self.causal and bias is None, grouped=self.grouped)
        if visible is not None:
            y = y.masked_fill(~visible.any(-1, keepdim=True), 0.0)
        return self.out(y.transpose(-3, -2).flatten(-2))

    def _project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [..., N, H, W], keys and values [..., M, H or kv_heads, W]."""
        if self.kv_heads is not None:
            memory, kv_heads = (x if memory is None else memory, self.kv_heads)
            return (
                split_heads(self.q(x), self.heads),
                split_heads(self.k(memory), kv_heads),
                split_heads(self.v(memory), kv_heads),
            )
        if memory is None:
            q, k, v = split_heads(self.qkv(x), 3, self.heads).unbind(-3)
            return (q, k, v)
        joined, weight, bias = (self.qkv.out_features // 3, self.qkv.weight, self.qkv.bias)
        of_q, of_kv = (slice(None, joined), slice(joined, None))
        q = F.linear(x, weight[of_q], None if bias is None else bias[of_q])
        kv = F.linear(memory, weight[of_kv], None if bias is None else bias[of_kv])
        k, v = split_heads(kv, 2, self.heads).unbind(-3)
        return (split_heads(q, self.heads), k, v)

    def _merge_masks(
        self, q: Tensor, k: Tensor, attn_mask: Tensor | None, key_mask: Tensor | None
    ) -> Tensor | None:
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


def split_heads(x: Any, *parts: int) -> Tensor:
    """Unflatten the last axis into `parts` and the remaining width."""
    return x.unflatten(-1, (*parts, -1))


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate number i of x [..., W] with the one half of the numbers later."""
    cos, sin = rotation
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def apply_mask(x: Tensor, mask: Tensor | None, otherwise: float=0.0) -> Tensor:
    """Fill x with `otherwise` where the mask, which broadcasts against it, is false.

    Unlike a product, this keeps infinities and NaNs in padding out of values and gradients.
    """
    return x if mask is None else x.masked_fill(~mask, otherwise)


class Relative(nn.Module):
    """A learned bias for each head and bucket of distances, added to the scores (Raffel et al., T5, 2020)."""

    def __init__(self, buckets: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        self.table = [
            bucket_of(distance, buckets if causal else buckets // 2) for distance in range(FARTHEST + 1)
        ]
        self.later = 0 if causal else buckets // 2

    def forward(self, N: int, M: int, visible: Tensor | None) -> Tensor:
        """The bias [1, H, N, M], broadcast against `visible`; the least finite number where that is false."""
        device = self.weight.device
        back = torch.arange(N, device=device).unsqueeze(-1) - torch.arange(M, device=device)
        table = constant(self.table, torch.int64, device)
        bucket = table[back.abs().clamp(max=FARTHEST)] + self.later * (back < 0)
        bias = self.weight[bucket].permute(2, 0, 1).unsqueeze(0)
        return bias if visible is None else bias.masked_fill(~visible, torch.finfo(bias.dtype).min)


FARTHEST = 128


def bucket_of(distance: int, buckets: int) -> int:
    """The bucket of a distance. Half of the buckets hold one distance each; the others grow logarithmically."""
    exact = buckets // 2
    if distance < exact:
        return distance
    share = math.log(distance / exact) / math.log(FARTHEST / exact)
    return min(exact + int(share * (buckets - exact)), buckets - 1)


def constant(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor [n] of constant numbers."""
    if device.type != "cuda" or torch.compiler.is_compiling():
        return torch.tensor(values, dtype=dtype, device=device)
    return to_device(torch.tensor(values, dtype=dtype), device)


def to_device(x: Tensor, device: torch.device, dtype: torch.dtype | None=None) -> Tensor:
    """Copy a tensor to a device, and convert it to `dtype` if that is given."""
    x = x if dtype is None else x.to(dtype=dtype)
    if device.type != "cuda" or x.device.type != "cpu":
        return x.to(device)
    return x.pin_memory().to(device, non_blocking=True)


class Rotary(nn.Module):
    """Rotates the first `width` numbers of x [..., N, ..., D] by angles that grow along an axis, from 0.

    Number i turns with the one half of `width` later (Su et al., RoFormer, 2021), in Llama's layout.
    """

    def __init__(self, width: int, axis: int, base: float) -> None:
        super().__init__()
        self.width, self.axis = (width, axis)
        self.speeds = [base ** (-2 * at / width) for at in range(width // 2)]

    def forward(self, x: Tensor, places: Tensor | None=None) -> Tensor:
        rotation = self.rotation(x, places)
        if self.width == x.shape[-1]:
            return rotate(x, rotation)
        others = x[..., self.width:]
        return torch.cat((rotate(x[..., :self.width], rotation), others), -1)

    def rotation(self, x: Tensor, places: Tensor | None=None) -> tuple[Tensor, Tensor]:
        """Cosines and sines, which broadcast against halves of x, for positions [..., 1] or those along the axis."""
        angle: Any = {"dtype": exact(x), "device": x.device}
        if places is None:
            places = torch.arange(x.shape[self.axis], **angle).reshape(-1, *[1] * (-1 - self.axis))
        angles = places * constant(self.speeds, **angle)
        return (angles.cos().to(x.dtype), angles.sin().to(x.dtype))


def exact(x: Tensor) -> torch.dtype:
    """A dtype that represents whole numbers exactly: float32 if that of x has two bytes, else that of x."""
    return x.dtype if x.dtype.itemsize >= 4 else torch.float32


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, grouped: bool) -> Tensor:
    """Call torch's fused attention on q [..., H, N, W]. Its kernels and exporter take one outer axis, so merge them."""
    outer = q.shape[:-3]
    if len(outer) > 1:
        q, k, v = (each.flatten(0, -4) for each in (q, k, v))
        if bias is not None and bias.dim() > 4:
            bias = bias.expand(*outer, *bias.shape[-3:]).flatten(0, -4)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal, enable_gqa=grouped)
    return y.reshape(*outer, *y.shape[1:]) if len(outer) > 1 else y


class Position(nn.Module):
    """Adds a learned vector to each position of x [..., N, D]."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(positions, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[:x.shape[-2]]


class ClassToken(nn.Module):
    """Prepends a learned token: [..., N, D] to [..., N + 1, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        token = self.weight.expand(*x.shape[:-2], 1, -1)
        return torch.cat((token, x), dim=-2)


class _Images(nn.Module):
    """Lets a layer of [B, C, H, W] take any outer axes."""

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


def cv_squared(x: Tensor) -> Tensor:
    """The squared coefficient of variation along the last axis, with unbiased variance; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    least = 2.0 ** 20 * torch.finfo(x.dtype).tiny
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=least)


def route_by_choice(x: Tensor, gates: Tensor, choice: Tensor, modules: Any) -> Tensor:
    """Sum gate_j f_j(x) over the modules of each token's choice; each module runs on the tokens that chose it.

    x [..., message], gates and choice [..., M] give [..., result].
    """
    x_S, gates_SM, choice_SM = flat(x, gates, choice)
    tokens_of = [choice_SM[:, j].nonzero().squeeze(1) for j in range(len(modules))]
    values = torch.cat([modules[j](x_S.index_select(0, at)) for j, at in enumerate(tokens_of)])
    weight = torch.cat([gates_SM[:, j].index_select(0, at) for j, at in enumerate(tokens_of)])
    found = sum_edges(values, weight, torch.cat(tokens_of), x_S.shape[0])
    return found.reshape(*gates.shape[:-1], *found.shape[1:])


def sum_edges(values_E: Tensor, weight_E: Tensor, token_E: Tensor, tokens: int) -> Tensor:
    """Sum values [E, result] times weights [E] over the edges of each token: [S, result]."""
    weighted = values_E.flatten(1) * weight_E.unsqueeze(-1)
    total = weighted.new_zeros(tokens, weighted.shape[1]).index_add(0, token_E, weighted)
    return total.reshape(-1, *values_E.shape[1:])


def flat(tokens: Tensor, gates: Tensor, choice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Flatten outer axes: tokens [..., N, message] to [S, message], gates and choice [..., N, M] to [S, M]."""
    M = gates.shape[-1]
    return (tokens.reshape(-1, *tokens.shape[gates.dim() - 1:]), gates.reshape(-1, M), choice.reshape(-1, M))


@dataclass_transform(eq_default=False)
class Layer(nn.Module):
    """A module whose annotated fields are the arguments of its constructor."""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        super().__init__()


class AlongAxis(Layer):
    axis: int


class KthLargest(AlongAxis):
    """The k-th largest value without padding; the least if there are fewer than k, zero if there are none."""
    k: int

    def forward(self, x: Tensor, mask: Tensor | None=None) -> Tensor:
        order = stable_argsort(apply_mask(x.detach(), mask, -torch.inf), self.axis, descending=True)
        if mask is None:
            last = order.narrow(self.axis, min(self.k, x.shape[self.axis]) - 1, 1).clone()
            return x.gather(self.axis, last).squeeze(self.axis)
        count = mask.sum(self.axis, keepdim=True)
        at = (count.clamp(max=self.k) - 1).clamp(min=0).expand(order.narrow(self.axis, 0, 1).shape)
        found = x.gather(self.axis, order.gather(self.axis, at)).squeeze(self.axis)
        return torch.where(mask.any(self.axis), found, 0.0)


def stable_argsort(x: Tensor, axis: int, descending: bool=False) -> Tensor:
    """The indices that sort x along an axis, stably.

    ONNX has no stable sort, but torch exports any sort as TopK, which takes the first of equal values.
    """
    return x.argsort(dim=axis, descending=descending, stable=True)


class TopKMask(AlongAxis):
    """One at the k largest along an axis, else zero; ties go to the first."""
    k: int

    def forward(self, x: Tensor, mask: Tensor | None=None) -> Tensor:
        """x of any shape gives the same shape; the choice never falls on padding."""
        values = apply_mask(x.detach(), mask, -torch.inf)
        choice = top_k_mask(values.movedim(self.axis, -1), self.k).movedim(-1, self.axis)
        return apply_mask(choice.to(x.dtype), mask)


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """True at the k largest of scores [..., M] along the last axis, by k rounds of argmax; ties go to the first."""
    choice, left = (torch.zeros_like(scores, dtype=torch.bool), scores)
    for round_ in range(k):
        left = left if round_ == 0 else scores.masked_fill(choice, -torch.inf)
        choice = choice.scatter(-1, left.argmax(-1, keepdim=True), True)
    return choice


class NormalNoise(Layer):
    """Normal noise in training. The deviation is a number or an operand; the number zero samples nothing."""
    deviation: float | None = None

    def forward(self, x: Tensor, deviation: Tensor | None=None) -> Tensor:
        """x of any shape, and a deviation of the same, give that shape."""
        if not self.training or self.deviation == 0:
            return torch.zeros_like(x)
        return standard_normal(x) * (deviation if self.deviation is None else self.deviation)


def standard_normal(like: Tensor) -> Tensor:
    """Sample normal noise of a tensor's shape, dtype and device; it does not depend on how the batch is sharded."""
    return noise_like(like, torch.randn)


def noise_like(like: Tensor, draw: Callable[..., Tensor]) -> Tensor:
    """Sample noise of a tensor's shape, dtype and device by `draw`."""
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
        return route_by_choice(x, gates, chosen, expert), scores.softmax(-1), y


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
        importance_load = cv_squared(probabilities.flatten(0, -2).sum(0)) + cv_squared(
            probabilities_2.flatten(0, -2).sum(0)
        )
        importance_load_2 = cv_squared(y.flatten(0, -2).sum(0)) + cv_squared(y_2.flatten(0, -2).sum(0))  # []
        losses = {
            "loss.cross_entropy": F.cross_entropy(head, label.long(), reduction="none").mean(),
            "loss.importance_load": (0.005 * (importance_load + importance_load_2)).mean(),
        }
        return head, losses
