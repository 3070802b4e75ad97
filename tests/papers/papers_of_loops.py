"""The equations of papers that compute until they have enough, for one example, in torch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

Weights = Mapping[str, Tensor]


def mapped(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def normed(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-6)


def adaptive_computation(w: Weights, x: Tensor, most: int = 5) -> dict[str, Tensor]:
    """Graves, 2016, equations 4 to 13: N = min {n: Σ h ≥ 1 − ε}, R = 1 − Σ_{n<N} h, s = Σ p sⁿ, ρ = N + R."""
    s, outputs, ponders = x.new_zeros(6), [], []
    for v in x:
        state, before, mixed = s, x.new_zeros(()), torch.zeros_like(s)
        for n in range(1, most + 1):
            flag = w["first"] if n == 1 else 0
            state = torch.tanh(mapped(w, "states.state.h.linear", torch.cat([v, state])) + flag)
            h = mapped(w, "states.state.p.linear", state).sigmoid()[0]
            if before + h >= 0.99 or n == most:
                mixed = mixed + (1 - before) * state
                break
            mixed, before = mixed + h * state, before + h
        s = mixed
        outputs.append(mapped(w, "z.linear", s))
        ponders.append(n + 1 - before)
    return {"z": torch.stack(outputs), "ponders": torch.stack(ponders)}


def universal_transformer(w: Weights, words: Tensor, most: int = 6) -> dict[str, Tensor]:
    """Dehghani et al., 2019, appendix C, a word at a time; one that has halted keeps its state."""
    h = [*w["z.h.init.embedding.weight"][words]]
    mixtures, total = [torch.zeros_like(each) for each in h], [h[0].new_zeros(()) for _ in h]
    counts, remainders, going = [0] * len(h), [h[0].new_zeros(()) for _ in h], [True] * len(h)
    for v in w["place"][:most]:
        rows = torch.stack([each + v for each in h])
        after = layer(w, "z.h.layer", rows)
        for at in [at for at, each in enumerate(going) if each]:
            p, share = mapped(w, "z.p.linear", rows[at]).sigmoid()[0], 1 - total[at]
            going[at] = bool(total[at] + p <= 0.99)
            share = p if going[at] else share
            remainders[at] = remainders[at] if going[at] else share
            h[at], mixtures[at] = after[at], share * after[at] + (1 - share) * mixtures[at]
            total[at], counts[at] = total[at] + share, counts[at] + 1
    ponder = torch.stack([count + rest for count, rest in zip(counts, remainders, strict=True)])
    return {"logits": mapped(w, "logits.linear", torch.stack(mixtures)), "ponder": ponder}


def layer(w: Weights, name: str, x: Tensor) -> Tensor:
    h = normed(w, f"{name}.h.layer_norm", x + attended(w, f"{name}.h.attention", x))
    inner = mapped(w, f"{name}.y.linear", h).relu()
    return normed(w, f"{name}.y.layer_norm", h + mapped(w, f"{name}.y.linear2", inner))


def attended(w: Weights, name: str, x: Tensor) -> Tensor:
    """Two causal heads of x [N, D]."""
    q, k, v = (each.unflatten(-1, (2, -1)).transpose(0, 1) for each in mapped(w, f"{name}.qkv", x).chunk(3, -1))
    future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -torch.inf)
    return mapped(w, f"{name}.out", (scores.softmax(-1) @ v).transpose(0, 1).flatten(-2))


PAPERS = (adaptive_computation, universal_transformer)
