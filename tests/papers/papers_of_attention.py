"""The equations of papers that change attention, query by query and head by head, for one example, in torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

Weights = Mapping[str, Tensor]
Sees = Callable[[int], Iterable[int]]  # the keys that a query sees, by place
EDGES = [[0, 1, 5], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [0, 4, 5]]  # of the graph of six nodes


def mapped(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def normed(w: Weights, name: str, x: Tensor, eps: float = 1e-6) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * w[f"{name}.weight"]


def rotated(x: Tensor, place: float, speeds: Tensor) -> Tensor:
    """Pairs of numbers, i with i + half, turned by place · speed i."""
    half = len(speeds)
    pairs = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(speeds), place * speeds)
    return torch.cat((pairs.real, pairs.imag), -1)


def list_speeds(half: int, base: float = 10000.0) -> Tensor:
    return base ** (-torch.arange(half, dtype=torch.float64) / half)


def attended(
    w: Weights, name: str, x: Tensor, width: int, sees: Sees, score: Callable[..., Tensor], sink: Tensor | None = None
) -> Tensor:
    """Heads of a width, of which neighbours share keys if these are fewer; `score` is one of (q, t), (k, s), head."""
    q, k, v = (mapped(w, f"{name}.{each}.linear", x).unflatten(-1, (-1, width)) for each in "qkv")
    shared, rows = q.shape[1] // k.shape[1], []
    for t in range(len(x)):
        heads = []
        for head in range(q.shape[1]):
            of, near = head // shared, [*sees(t)]
            scores = torch.stack([score((q[t, head], t), (k[s, of], s), head) for s in near])
            powers, extra = scores.exp(), 0 if sink is None else sink[head].exp()
            heads.append(powers / (powers.sum() + extra) @ v[near, of])
        rows.append(torch.cat(heads))
    return mapped(w, f"{name}.y.linear", torch.stack(rows))


def see_window(width: int) -> Sees:
    return lambda t: range(max(0, t - width + 1), t + 1)


def soft_caps(w: Weights, words: Tensor) -> dict[str, Tensor]:
    """Gemma 2, section 2, with the norms of its code: each part has one before it and one behind."""

    def capped(query: tuple[Tensor, int], key: tuple[Tensor, int], head: int) -> Tensor:
        (q, t), (k, s) = query, key
        return 50 * torch.tanh(rotated(q, t, list_speeds(2)) @ rotated(k, s, list_speeds(2)) / math.sqrt(4) / 50)

    x = math.sqrt(16) * w["word"][words]
    for i in range(2):
        at, sees = f"layer.{i}", see_window(3 if i == 0 else len(x))
        seen = attended(w, f"{at}.h.attend", normed(w, f"{at}.h.rms_norm", x), 4, sees, capped)
        h = x + normed(w, f"{at}.h.rms_norm2", seen)
        u = normed(w, f"{at}.x.rms_norm", h)
        gate = F.gelu(mapped(w, f"{at}.x.geglu.gate.linear", u), approximate="tanh")
        u = mapped(w, f"{at}.x.geglu.y.linear2", gate * mapped(w, f"{at}.x.geglu.y.linear", u))
        x = h + normed(w, f"{at}.x.rms_norm2", u)
    return {"logits": 30 * torch.tanh(normed(w, "logits.rms_norm", x) @ w["word"].T / 30)}


def linear_biases(w: Weights, words: Tensor) -> dict[str, Tensor]:
    """Press et al., 2022, section 3: softmax(q Kᵀ + m · [−(t − 1), …, −1, 0]), m = 1/4, 1/16, … of four heads."""

    def biased(query: tuple[Tensor, int], key: tuple[Tensor, int], head: int) -> Tensor:
        return query[0] @ key[0] / math.sqrt(4) - (1 / 4) ** (head + 1) * (query[1] - key[1])

    def norm(name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (16,), w[f"{name}.layer_norm.weight"], w[f"{name}.layer_norm.bias"], 1e-6)

    x = w["x.embedding.weight"][words]
    for i in range(2):
        at = f"layer.{i}"
        h = x + attended(w, f"{at}.h.attend", norm(f"{at}.h", x), 4, see_window(len(x)), biased)
        x = h + mapped(w, f"{at}.x.linear2", mapped(w, f"{at}.x.linear", norm(f"{at}.x", h)).relu())
    return {"logits": mapped(w, "logits.linear", norm("logits", x))}


def attention_sinks(w: Weights, words: Tensor) -> dict[str, Tensor]:
    """Xiao et al., 2024, section 3.2, as it streams: keys are cached before rotation, two first ones and a window of
    four, and get their place in the cache."""
    speeds, x = list_speeds(4), w["x.embedding.weight"][words]
    for i in range(2):
        at = f"layer.{i}"
        u = normed(w, f"{at}.h.rms_norm", x)
        q, k, v = (mapped(w, f"{at}.h.attend.{each}.linear", u).unflatten(-1, (2, 8)) for each in "qkv")
        cache, rows = list[int](), []
        for t in range(len(x)):
            cache = [*cache[:2], *cache[2:][-3:], t]
            heads = []
            for head in range(2):
                query = rotated(q[t, head], len(cache) - 1, speeds)
                keys = [rotated(k[s, head], place, speeds) for place, s in enumerate(cache)]
                gates = (torch.stack(keys) @ query / math.sqrt(8)).softmax(0)
                heads.append(gates @ v[cache, head])
            rows.append(torch.cat(heads))
        h = x + mapped(w, f"{at}.h.attend.y.linear", torch.stack(rows))
        inner = F.silu(mapped(w, f"{at}.x.linear", normed(w, f"{at}.x.rms_norm", h)))
        x = h + mapped(w, f"{at}.x.linear2", inner)
    return {"logits": mapped(w, "logits.linear", normed(w, "logits.rms_norm", x))}


def mixture_of_attention_heads(w: Weights, x: Tensor) -> dict[str, Tensor]:
    """Zhang et al., 2022, section 3: Σ w_i softmax(x W^q_i (X W^k)ᵀ / √d) X W^v W^o_i over the two best heads."""
    k, v = mapped(w, "scores.linear", x), mapped(w, "h.linear", x)
    rows = []
    for token in x:
        p = mapped(w, "logits.linear", token).softmax(0)
        best = p.topk(2).indices.tolist()
        total = p[best].sum().detach()
        heads = [(k @ mapped(w, f"query.{i}.linear", token) / math.sqrt(4)).softmax(0) @ v for i in best]
        mixed = (p[i] / total * mapped(w, f"out.{i}.linear", each) for i, each in zip(best, heads, strict=True))
        rows.append(torch.stack([*mixed]).sum(0))
    return {"z": torch.stack(rows)}


def switch_head(w: Weights, x: Tensor) -> dict[str, Tensor]:
    """Csordás et al., 2024, equations 5 to 10: σ(x W_S) weighs experts of values, σ(x W_D) those of outputs."""

    def mix(pool: str, head: int, token: Tensor, value: Tensor) -> Tensor:
        at = f"{pool}.{head}.mixture"
        scores = mapped(w, f"{at}.scores.linear", token).sigmoid()
        best = scores.topk(2).indices.tolist()
        return torch.stack([scores[e] * mapped(w, f"{at}.expert.{e}.linear", value) for e in best]).sum(0)

    q, k = (mapped(w, f"{each}.linear", x).unflatten(-1, (2, 6)) for each in "qk")
    v = torch.stack([torch.stack([mix("head", head, token, token) for head in range(2)]) for token in x])
    rows = []
    for t, token in enumerate(x):
        heads = [(k[: t + 1, head] @ q[t, head] / math.sqrt(6)).softmax(0) @ v[: t + 1, head] for head in range(2)]
        rows.append(torch.stack([mix("out", head, token, heads[head]) for head in range(2)]).sum(0))
    return {"z": torch.stack(rows)}


def graph_attention(w: Weights, x: Tensor) -> dict[str, Tensor]:
    """Veličković et al., 2018, equations 1 to 6: α_ij = softmax_j(LeakyReLU(aᵀ [W h_i ‖ W h_j]))."""

    def layer(name: str, x: Tensor, heads: int) -> Tensor:
        h = mapped(w, f"{name}.h.linear", x).unflatten(-1, (heads, -1))
        a = torch.cat((w[f"{name}.own"], w[f"{name}.other"]), -1)
        rows = []
        for i, near in enumerate(EDGES):
            pairs = torch.stack([torch.cat((h[i], h[j]), -1) for j in near])
            alpha = F.leaky_relu((pairs * a).sum(-1), 0.2).softmax(0)
            rows.append((alpha[..., None] * h[near]).sum(0))
        return torch.stack(rows)

    h = F.elu(layer("h.attend", x, 4).flatten(-2))
    return {"logits": layer("logits.attend", h, 2).mean(-2)}


def yarn(half: int, base: float, trained: int, scaled: float) -> Tensor:
    """The speeds of gpt-oss's code: from number `low` to number `high` of a head they turn from kept to scaled."""
    low, high = (half * math.log(trained / (cycles * 2 * math.pi)) / math.log(base) for cycles in (32, 1))
    ramp = ((torch.arange(half, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    speeds = list_speeds(half, base)
    return ramp * speeds / scaled + (1 - ramp) * speeds


def gpt_oss(w: Weights, words: Tensor) -> dict[str, Tensor]:
    """The layers of gpt-oss's code; its four experts of a token have weights from a softmax among their scores."""
    speeds, strength = yarn(4, 150000, 64, 32), 1 + 0.1 * math.log(32)

    def score(query: tuple[Tensor, int], key: tuple[Tensor, int], head: int) -> Tensor:
        q, k = (strength * rotated(each, place, speeds) for each, place in (query, key))
        return q @ k / math.sqrt(8)

    def swiglu(name: str, token: Tensor) -> Tensor:
        gate, up = mapped(w, f"{name}.gate_up.linear", token).chunk(2)
        gate, up = gate.clamp(max=7), up.clamp(-7, 7)
        return mapped(w, f"{name}.y.linear", gate * torch.sigmoid(1.702 * gate) * (up + 1))

    x = w["x.embedding.weight"][words]
    for i in range(2):
        at, sees = f"layer.{i}", see_window(4 if i == 0 else len(x))
        u, sink = normed(w, f"{at}.h.rms_norm", x, 1e-5), w[f"{at}.h.attend.sink"].flatten()
        h = x + attended(w, f"{at}.h.attend", u, 8, sees, score, sink)
        rows = []
        for token in normed(w, f"{at}.u.rms_norm", h, 1e-5):
            best = mapped(w, f"{at}.scores.linear", token).topk(4)
            mixed = zip(best.values.softmax(0), best.indices.tolist(), strict=True)
            rows.append(torch.stack([gate * swiglu(f"{at}.expert.{e}.swiglu", token) for gate, e in mixed]).sum(0))
        x = h + torch.stack(rows)
    return {"logits": mapped(w, "logits.linear", normed(w, "logits.rms_norm", x, 1e-5))}


PAPERS = (
    attention_sinks,
    gpt_oss,
    graph_attention,
    linear_biases,
    mixture_of_attention_heads,
    soft_caps,
    switch_head,
)
