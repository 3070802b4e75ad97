"""smn(modules=2, iterations=4, classes=10, balance=0.001, over="example", bias=false, update="sum",
    residual=false, uncertainty=0.0)

Written by modgraph 0.1.0; it needs torch alone, and takes modgraph's weights:
model = Smn(); model.load_state_dict(safetensors.torch.load_file("weights.safetensors")); output = model(image)
B is the axis of examples, "..." stands for any axes before those of one message.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ModulatedMap(nn.Module):
    """y = W (x ⊙ LayerNorm(Wc c)) + b for a code c. The modules of a pool share W, Wc and b."""

    def __init__(self, width_in: int, width: int, code_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width_in))
        self.bias = nn.Parameter(torch.zeros(width))
        self.code_weight = nn.Parameter(torch.empty(width_in, code_width))

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """x [..., D] and codes [..., C] that broadcast against it give [..., V]."""
        gain = F.layer_norm(F.linear(code, self.code_weight), self.code_weight.shape[:1])
        return F.linear(x * gain, self.weight, self.bias)


class Coded(nn.Module):
    """One module of a pool whose modules share a modulated map; it owns a code [C]."""

    def __init__(self, shared: nn.Module, code_width: int) -> None:
        super().__init__()
        self.code = nn.Parameter(torch.empty(code_width))
        self._shared = (shared,)

    def forward(self, x: Tensor) -> Tensor:
        return self._shared[0](x, self.code)


def cv_squared(x: Tensor) -> Tensor:
    """The squared coefficient of variation along the last axis, with unbiased variance; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    least = 2.0 ** 20 * torch.finfo(x.dtype).tiny
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=least)


class Glimpses(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 32, 5)
        self.conv2 = nn.Conv2d(32, 64, 5)

    def forward(self, x):
        return F.relu(self.conv2(F.max_pool2d(F.relu(self.conv(x)), 2))).flatten(-2).transpose(-1, -2)


class Specialist(nn.Module):
    """One module of specialist: [..., 64] to [..., 384]."""

    def __init__(self, shared):
        super().__init__()
        self.modulated_linear = Coded(shared.modulated_linear, code_width=384)
        nn.init.uniform_(self.modulated_linear.code, -0.051031036307982884, 0.051031036307982884)

    def forward(self, x):
        return self.modulated_linear(x)


def agreement_round(v, key_turned, tokens, key_inverse, specialist):
    scores_product = torch.einsum(
        "...ab,...cb->...ac", tokens, F.linear(F.normalize(v, dim=-1, eps=1e-08), key_turned)
    )
    scores = scores_product * key_inverse.unsqueeze(-1)  # [B, 64, 2]
    gates = scores.softmax(-1)  # [B, 64, 2]
    return torch.einsum(
        "zam,zamV->zmV", gates, torch.stack([module(tokens) for module in specialist], -2)
    ), scores


def agreement_round_2(v, key_turned, tokens, key_inverse, scores, specialist):
    scores_product = torch.einsum(
        "...ab,...cb->...ac", tokens, F.linear(F.normalize(v, dim=-1, eps=1e-08), key_turned)
    )
    scores = scores + scores_product * key_inverse.unsqueeze(-1)  # [B, 64, 2]
    gates = scores.softmax(-1)  # [B, 64, 2]
    return torch.einsum(
        "zam,zamV->zmV", gates, torch.stack([module(tokens) for module in specialist], -2)
    ), scores, gates


class Agreement(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(nn.init.uniform_(torch.empty(384, 64), -0.125, 0.125))

    def forward(self, x, specialist):
        key_turned = self.weight.transpose(-2, -1)  # [64, 384]
        key_least = (F.linear(x, F.linear(key_turned, key_turned)) * x).sum(-1).clamp(min=1e-16)  # [B, 64]
        key_inverse = 1.0 / key_least.sqrt()  # [B, 64]
        even = x.new_full((64,), 0.015625)  # [64]
        v = torch.einsum(
            "za,zamV->zmV", even.expand(len(x), -1), torch.stack([module(x) for module in specialist], -2)
        )
        v, scores = agreement_round(v, key_turned, x, key_inverse, specialist)
        for _ in range(3):
            v, scores, gates = agreement_round_2(v, key_turned, x, key_inverse, scores, specialist)
        return v, gates


class Smn(nn.Module):
    """image: float[1, 28, 28] to logits: float[10]."""

    def __init__(self):
        super().__init__()
        self.glimpses = Glimpses()
        shared = nn.ModuleDict({"modulated_linear": ModulatedMap(64, width=384, code_width=384)})
        nn.init.uniform_(shared.modulated_linear.weight, -0.125, 0.125)
        nn.init.zeros_(shared.modulated_linear.bias)
        nn.init.uniform_(shared.modulated_linear.code_weight, -0.051031036307982884, 0.051031036307982884)
        self.specialist = nn.ModuleList([Specialist(shared) for _ in range(2)])
        self.specialist.shared = shared
        self.agree = Agreement()
        self.logits = nn.ModuleDict({"linear": nn.Linear(384, 10)})

    def forward(self, image, label=None):
        """The output, and the losses by name where targets are given."""
        v, gates = self.agree(self.glimpses(image), self.specialist[:2])
        logits = self.logits.linear(v.mean(-2))  # [B, 10]
        if label is None:
            return logits
        losses = {
            "loss.cross_entropy": F.cross_entropy(logits, label.long(), reduction="none").mean(),
            "loss.importance": (0.001 * cv_squared(gates.flatten(1, -2).sum(1))).mean(),
        }
        return logits, losses
