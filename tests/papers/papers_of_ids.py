"""The equations of papers that route, look up and compare by ids, for one example, in torch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

Weights = Mapping[str, Tensor]
TABLE = [0, 3, 1, 2, 2, 0, 3, 1, 1, 2, 0, 3]  # the module of each word


def mapped(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def normed(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-6)


def attended(w: Weights, name: str, x: Tensor) -> Tensor:
    """Two causal heads of x [N, D]."""
    q, k, v = (each.unflatten(-1, (2, -1)).transpose(0, 1) for each in mapped(w, f"{name}.qkv", x).chunk(3, -1))
    future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -torch.inf)
    return mapped(w, f"{name}.out", (scores.softmax(-1) @ v).transpose(0, 1).flatten(-2))


def hash_layer(w: Weights, words: Tensor) -> dict[str, Tensor]:
    """Roller et al., 2021: h = LN(x + attention(x)), y = LN(h + FFN of the word's module of h)."""
    x = w["x.embedding.weight"][words]
    rows = []
    for word, h in zip(words.tolist(), normed(w, "h.layer_norm", x + attended(w, "h.attention", x)), strict=True):
        name = f"expert.{TABLE[word]}"
        rows.append(h + mapped(w, f"{name}.linear2", mapped(w, f"{name}.linear", h).relu()))
    return {"logits": mapped(w, "logits.linear", normed(w, "y.layer_norm", torch.stack(rows)))}


def tied_embedding(w: Weights, words: Tensor) -> dict[str, Tensor]:
    x = math.sqrt(8) * w["word"][words]
    h = normed(w, "h.layer_norm2", x + attended(w, "h.attention", normed(w, "h.layer_norm", x)))
    return {"logits": h @ w["word"].T}


def product_keys(w: Weights, x: Tensor) -> dict[str, Tensor]:
    """He, 2024, equation 2 and algorithm 1: among all keys² modules, without the shortcut of two short lists."""
    keys, rows = len(w["first"]), []
    for token in x:
        query = mapped(w, "query.linear", token).unflatten(0, (2, -1))
        z = torch.zeros_like(token)
        for head in normed(w, "query.layer_norm", query):
            a, b = head.chunk(2)
            scores = ((w["first"] @ a)[:, None] + (w["second"] @ b)).flatten()
            best = scores.topk(3)
            for gate, module in zip(best.values.softmax(0), best.indices.tolist(), strict=True):
                assert module < keys**2
                z = z + gate * F.gelu(w["down"][module] @ token) * w["up"][module]
        rows.append(z)
    return {"z": torch.stack(rows)}


def peer(w: Weights, x: Tensor) -> dict[str, Tensor]:
    """The same with a pool: module j has row j of both arrays."""
    names = [f"expert.{j}.linear" for j in range(len(w["first"]) ** 2)]
    down = torch.cat([w[f"{name}.weight"] for name in names])
    up = torch.stack([w[f"{name}2.weight"][:, 0] for name in names])
    return product_keys({**w, "down": down, "up": up}, x)


def squash(s: Tensor) -> Tensor:
    norm = s.norm(dim=-1, keepdim=True)
    return norm**2 / (1 + norm**2) * s / norm


def capsules(w: Weights, image: Tensor) -> dict[str, Tensor]:
    """Sabour et al., 2017, procedure 1, with the picture of the longest capsule."""
    u = F.conv2d(image, w["u.conv.weight"], w["u.conv.bias"]).relu()
    u = F.conv2d(u, w["u.conv2.weight"], w["u.conv2.bias"], stride=2)  # [maps · 8, rows, columns]
    u = squash(u.unflatten(0, (2, 8)).permute(0, 2, 3, 1).flatten(0, 2))
    predictions = torch.stack([torch.stack([part @ u[i] for part in to]) for i, to in enumerate(w["to"])])
    b = torch.zeros(predictions.shape[:2], dtype=u.dtype)
    for _ in range(3):
        v = squash((b.softmax(1)[..., None] * predictions).sum(0))
        b = b + (predictions * v).sum(-1)
    length = v.norm(dim=-1)
    longest = F.one_hot(length.argmax(), len(length)).to(v.dtype)
    inner = mapped(w, "picture.linear", (v * longest[:, None]).flatten()).relu()
    return {"length": length, "picture": mapped(w, "picture.linear2", inner).sigmoid()}


def margin_loss(length: Tensor, label: int) -> Tensor:
    """Sabour et al., 2017, equation 4."""
    is_it = F.one_hot(torch.tensor(label), len(length)).to(length.dtype)
    losses = is_it * (0.9 - length).relu() ** 2 + 0.5 * (1 - is_it) * (length - 0.1).relu() ** 2
    return losses.sum()


PAPERS = (capsules, hash_layer, peer, product_keys, tied_embedding)
