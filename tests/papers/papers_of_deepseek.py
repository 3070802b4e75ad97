"""The equations of DeepSeek-V3 (2024, sections 2.1 and 2.2), for one example, in torch."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from tests.papers.papers_of_ids import Weights, mapped

HEADS, WIDTH, ROTATED, LATENT = 2, 4, 2, 8


def normed(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], w[f"{name}.rms_norm.weight"], 1e-6)


def swiglu(w: Weights, name: str, x: Tensor) -> Tensor:
    name = f"{name}.swiglu.y"
    return mapped(w, f"{name}.linear3", F.silu(mapped(w, f"{name}.linear", x)) * mapped(w, f"{name}.linear2", x))


def rotated(x: Tensor, place: int) -> Tensor:
    """Pairs of numbers, i with i + half, turned by an angle of place · 10000^(−i/half)."""
    half = x.shape[-1] // 2
    rotation = torch.polar(torch.ones(half).to(x), place * 10000.0 ** (-torch.arange(half).to(x) / half))
    pairs = torch.complex(x[..., :half], x[..., half:]) * rotation
    return torch.cat((pairs.real, pairs.imag), -1)


def latent_attention(w: Weights, name: str, x: Tensor) -> Tensor:
    """Equations 1 to 11: keys and values of all heads come from one latent vector and one rotated key of a token."""
    name = f"{name}.latent_attention"
    latent = normed(w, f"{name}.queries", mapped(w, f"{name}.queries.linear", x))
    queries = mapped(w, f"{name}.queries.linear2", latent).unflatten(-1, (HEADS, WIDTH + ROTATED))
    c, shared = mapped(w, f"{name}.c_k_turned.linear", x).split([LATENT, ROTATED], -1)
    joined = mapped(w, f"{name}.k_v.linear", normed(w, f"{name}.k_v", c)).unflatten(-1, (HEADS, 2 * WIDTH))
    rows = []
    for t in range(len(x)):
        heads = []
        for head in range(HEADS):
            plain, turned = queries[t, head].split([WIDTH, ROTATED])
            scores = [
                plain @ joined[s, head, :WIDTH] + rotated(turned, t) @ rotated(shared[s], s) for s in range(t + 1)
            ]
            gates = (torch.stack(scores) / math.sqrt(WIDTH + ROTATED)).softmax(0)
            heads.append(gates @ joined[: t + 1, head, WIDTH:])
        rows.append(torch.cat(heads))
    return mapped(w, f"{name}.y.linear", torch.stack(rows))


def mixture(w: Weights, name: str, token: Tensor) -> Tensor:
    """Equations 12 to 16: the two best experts of the best group of four, by sigmoid scores with a bias."""
    scores = mapped(w, f"{name}.gate.scores.linear", token).sigmoid()
    biased = scores + w[f"{name}.gate.bias.value"]
    group = int(biased.unflatten(0, (2, 4)).topk(2).values.sum(-1).argmax())
    best = [4 * group + at for at in biased[4 * group : 4 * group + 4].topk(2).indices.tolist()]
    total = scores[best].sum()
    return torch.stack([scores[j] / total * swiglu(w, f"{name}.expert.{j}", token) for j in best]).sum(0)


def layer(w: Weights, name: str, x: Tensor) -> Tensor:
    name = f"{name}.layer"
    x = x + latent_attention(w, f"{name}.x", normed(w, f"{name}.x", x))
    h = normed(w, f"{name}.h", x)
    return x + swiglu(w, f"{name}.y", h) + torch.stack([*map(partial(mixture, w, name), h)])


def deepseek_v3(w: Weights, words: Tensor) -> dict[str, Tensor]:
    h = layer(w, "h", w["embed.embedding.weight"][words])
    return {"logits": mapped(w, "head.linear", normed(w, "logits", h))}


def predict_after(w: Weights, words: Tensor) -> Tensor:
    """Equations 21 to 23: logits of the word after the next one, of all tokens but the last."""
    x = w["embed.embedding.weight"][words]
    h = normed(w, "further", layer(w, "h", x))[:-1]
    joined = torch.cat((h, normed(w, "ahead", x[1:])), -1)
    further = layer(w, "further", mapped(w, "further.linear", joined))
    return mapped(w, "head.linear", F.rms_norm(further, further.shape[-1:], w["further.rms_norm2.weight"], 1e-6))


PAPERS = (deepseek_v3,)
