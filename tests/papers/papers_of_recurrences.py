"""The equations of papers whose states are linear recurrences, step by step, for one example, in torch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

Weights = Mapping[str, Tensor]


def mapped(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def normed(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-6)


def selective_state_space(w: Weights, x: Tensor) -> dict[str, Tensor]:
    """Gu and Dao, 2023: h' = exp(Δ A) h + Δ B x, y = C h + D x, with A = −exp(rate); one of four experts follows."""
    for layer in range(2):
        at = f"layer.{layer}.x.mamba"
        u, gate = mapped(w, f"{at}.u_gate.linear", normed(w, f"{at}.u_gate.layer_norm", x)).chunk(2, -1)
        past = F.pad(u.T, (3, 0))
        u = F.silu(F.conv1d(past, w[f"{at}.u.conv1d.weight"], w[f"{at}.u.conv1d.bias"], groups=8).T)
        h, read = torch.zeros(8, 4, dtype=x.dtype), []
        for v in u:
            step = F.softplus(mapped(w, f"{at}.y.step.linear", v))
            b, c = mapped(w, f"{at}.y.write_read.linear", v).chunk(2)
            h = torch.exp(-step[:, None] * w[f"{at}.rate"].exp()) * h + torch.outer(step * v, b)
            read.append(h @ c + w[f"{at}.skip"] * v)
        x = x + mapped(w, f"{at}.z.linear", torch.stack(read) * F.silu(gate))
        scores = mapped(w, f"layer.{layer}.scores.linear", x).softmax(-1)
        rows = []
        for token, each in zip(x, scores, strict=True):
            best = int(each.argmax())
            inner = F.silu(mapped(w, f"expert.{best}.linear", token))
            rows.append(token + each[best] * mapped(w, f"expert.{best}.linear2", inner))
        x = torch.stack(rows)
    return {"z": mapped(w, "z.linear", normed(w, "z.layer_norm", x))}


def gated_linear_attention(w: Weights, x: Tensor) -> dict[str, Tensor]:
    """Yang et al., 2024: S' = S diag(α) + v kᵀ, o = S q, with α = σ(x W)^(1/16)."""

    def step(s: Tensor, v: Tensor) -> Tensor:
        gate = mapped(w, "read.gate.linear", v).sigmoid().view(2, 1, 3) ** (1 / 16)
        return gate * s + torch.einsum("hv,hk->hvk", split(w, "value", v), split(w, "key", v))

    return read_heads(w, x, step, unit=False)


def gated_delta(w: Weights, x: Tensor) -> dict[str, Tensor]:
    """Yang et al., 2025: S' = α S (I − β k kᵀ) + β v kᵀ, o = S q, with α = exp(−exp(a) softplus(x W))."""

    def step(s: Tensor, v: Tensor) -> Tensor:
        alpha = torch.exp(-w["rate"].exp() * F.softplus(mapped(w, "read.step.linear", v)))[:, None, None]
        beta = mapped(w, "read.beta.linear", v).sigmoid()[:, None, None]
        k = F.normalize(split(w, "key", v), dim=-1)
        erase = torch.eye(3, dtype=x.dtype) - beta * k[:, :, None] * k[:, None, :]
        return alpha * s @ erase + beta * split(w, "value", v)[:, :, None] * k[:, None, :]

    return read_heads(w, x, step, unit=True)


def split(w: Weights, name: str, v: Tensor) -> Tensor:
    return mapped(w, f"read.{name}.linear", v).view(2, -1)


def read_heads(w: Weights, x: Tensor, step: object, unit: bool) -> dict[str, Tensor]:
    """Run two heads of a matrix [values, keys] each, and read them by queries."""
    s, read = torch.zeros(2, 4, 3, dtype=x.dtype), []
    for v in x:
        s = step(s, v)  # type: ignore[operator]
        query = split(w, "query", v)
        read.append((s @ (F.normalize(query, dim=-1) if unit else query)[..., None])[..., 0])
    heads = normed(w, "z.layer_norm", torch.stack(read)).flatten(-2)
    return {"z": mapped(w, "z.linear2", heads * F.silu(mapped(w, "z.linear", x)))}


PAPERS = (gated_delta, gated_linear_attention, selective_state_space)
