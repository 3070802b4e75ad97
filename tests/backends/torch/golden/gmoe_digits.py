"""gmoe_digits(classes=10, dim=32, depth=4, heads=4, experts=6, k=1, sparse=[1, 3], width=16, noise=1.0,
    balance=0.01, size=16, patch=4)

Written by modgraph 0.1.0; it needs torch alone, and takes modgraph's weights:
model = GmoeDigits(); model.load_state_dict(safetensors.torch.load_file("weights.safetensors")); output = model(image)
B is the axis of examples, "..." stands for any axes before those of one message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, dataclass_transform

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Position(nn.Module):
    """Adds a learned vector to each token of x [..., N, D] by its position, or by given `places` [..., N]."""

    def __init__(self, positions: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(positions, width))

    def forward(self, x: Tensor, places: Tensor | None=None) -> Tensor:
        return x + (self.weight[:x.shape[-2]] if places is None else self.weight[places.long()])


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
    values, tokens_of = send_by_choice(x_S, choice_SM, modules)
    weight = torch.cat([gates_SM[:, j].index_select(0, at) for j, at in enumerate(tokens_of)])
    found = sum_edges(values, weight, torch.cat(tokens_of), x_S.shape[0])
    return found.reshape(*gates.shape[:-1], *found.shape[1:])


def sum_edges(values_E: Tensor, weight_E: Tensor, token_E: Tensor, tokens: int) -> Tensor:
    """Sum values [E, result] times weights [E] over the edges of each token: [S, result]."""
    weighted = values_E.flatten(1) * weight_E.unsqueeze(-1)
    total = weighted.new_zeros(tokens, weighted.shape[1]).index_add(0, token_E, weighted)
    return total.reshape(-1, *values_E.shape[1:])


def send_by_choice(x_S: Tensor, choice_SM: Tensor, modules: Any) -> tuple[Tensor, list[Tensor]]:
    """The messages [E, result] of modules to the tokens that chose them, sorted by module, and these tokens of each."""
    tokens_of = [choice_SM[:, j].nonzero().squeeze(1) for j in range(len(modules))]
    return (torch.cat([modules[j](x_S.index_select(0, at)) for j, at in enumerate(tokens_of)]), tokens_of)


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


def apply_mask(x: Tensor, mask: Tensor | None, otherwise: float=0.0) -> Tensor:
    """Fill x with `otherwise` where the mask, which broadcasts against it, is false.

    Unlike a product, this keeps infinities and NaNs in padding out of values and gradients.
    """
    return x if mask is None else x.masked_fill(~mask, otherwise)


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
        return apply_mask(mark_top_k(values, self.k, self.axis), mask)


def mark_top_k(scores: Tensor, k: int, axis: int=-1) -> Tensor:
    """One at the k largest of scores along an axis, else zero, by k rounds of argmax; ties go to the first."""
    choice, left = (torch.zeros_like(scores), scores)
    for round_ in range(k):
        largest = left.argmax(axis, keepdim=True)
        choice = choice.scatter(axis, largest, 1.0)
        left = left.scatter(axis, largest, -torch.inf) if round_ < k - 1 else left
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


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        qkv = self.qkv(x)  # [B, 17, 96]
        q_k_v, q_k_v_2, q_k_v_3 = qkv.unflatten(-1, (12, 8)).split((4, 4, 4), dim=-2)
        y = F.scaled_dot_product_attention(
            q_k_v.transpose(-3, -2),
            q_k_v_2.transpose(-3, -2),
            q_k_v_3.transpose(-3, -2),
            scale=0.35355339059327373,
        ).transpose(-3, -2)
        output = y.flatten(-2, -1)  # [B, 17, 32]
        return self.out(output)


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
        self.attn = Attention()
        self.norm2 = nn.LayerNorm(32, eps=1e-06)
        self.mlp = Ffn()

    def forward(self, x):
        out = self.attn(self.norm1(x))  # [B, 17, 32]
        x = x + out  # [B, 17, 32]
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
        self.attn = Attention()
        self.norm2 = nn.LayerNorm(32, eps=1e-06)
        self.expert = nn.ModuleList([Expert() for _ in range(6)])
        self.gate = Cosine()

    def forward(self, x):
        out = self.attn(self.norm1(x))  # [B, 17, 32]
        x = x + out  # [B, 17, 32]
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
