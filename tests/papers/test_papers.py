"""Architectures that the language was not made for, each on one screen: they compute what their equations say, and only
what they choose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.types import TensorType
from tests.papers import papers_of_attention, papers_of_deepseek, papers_of_ids, papers_of_loops, papers_of_recurrences

HOME = Path(__file__).parent
Weights = Mapping[str, Tensor]
ACTIVE_SHARES = {
    "deepseek_moe": 4 / 16,
    "hash_layer": 1 / 4,
    "mechanisms": 1 / 5,
}  # of a pool's modules, for each sender


def built(name: str, **parameters: Any) -> tuple[Model, Weights]:
    model = modgraph.load(HOME / f"{name}.mod", **parameters).build(seed=1).double().eval()
    with torch.no_grad():
        for each in model.parameters():
            each.normal_(0, 0.5, generator=torch.Generator().manual_seed(each.numel()))
    return model, model.state_dict()


def mapped(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def normed(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-6)


def attended(w: Weights, name: str, x: Tensor, memory: Tensor | None = None, causal: bool = False) -> Tensor:
    """Two heads; queries of x [N, D], keys and values of the memory."""
    if memory is None:
        maps = zip("qkv", w[f"{name}.qkv.weight"].chunk(3), w[f"{name}.qkv.bias"].chunk(3), strict=True)
    else:
        maps = ((each, w[f"{name}.{each}.weight"], w[f"{name}.{each}.bias"]) for each in "qkv")  # type: ignore[assignment]
    q, k, v = (
        F.linear(x if each == "q" or memory is None else memory, *weights).unflatten(-1, (2, -1)).transpose(0, 1)
        for each, *weights in maps
    )
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    return mapped(w, f"{name}.out", (scores.softmax(-1) @ v).transpose(0, 1).flatten(-2))


def deepseek_moe(w: Weights, x: Tensor) -> dict[str, Tensor]:
    def swiglu(name: str, x: Tensor) -> Tensor:
        return mapped(w, f"{name}.linear3", F.silu(mapped(w, f"{name}.linear", x)) * mapped(w, f"{name}.linear2", x))

    rows = []
    for token in x:
        scores = mapped(w, "gate.scores.linear", token).sigmoid()
        choice = scores.topk(4).indices.tolist()
        mixed = sum(scores[j] * swiglu(f"expert.{j}.swiglu.y", token) for j in choice) / scores[choice].sum()
        rows.append(token + swiglu("z.swiglu.y", token) + mixed)
    return {"z": torch.stack(rows)}


def hierarchical_mixture(w: Weights, x: Tensor) -> dict[str, Tensor]:
    def branch(i: int) -> Tensor:
        name = f"branch.{i}.mixture"
        experts = torch.stack([mapped(w, f"{name}.expert.{j}.linear", x) for j in range(2)])
        return mapped(w, f"{name}.y.linear", x).softmax(-1) @ experts

    return {"logits": mapped(w, "logits.linear", x).softmax(-1) @ torch.stack([branch(i) for i in range(3)])}


def mechanisms(w: Weights, x: Tensor) -> dict[str, Tensor]:
    h, averages = torch.zeros(5, 8, dtype=x.dtype), []
    for v in x:
        key = mapped(w, "states.key.linear", v)
        scores = torch.stack([mapped(w, f"query.{j}.linear", h[j]) @ key for j in range(5)])
        choice = sorted(scores.topk(2).indices.tolist())
        moved = []
        for j in choice:
            z, r = mapped(w, f"cell.{j}.gru.z_r.linear", torch.cat([v, h[j]])).sigmoid().chunk(2)
            n = mapped(w, f"cell.{j}.gru.n.linear", torch.cat([v, r * h[j]])).tanh()
            moved.append((1 - z) * h[j] + z * n)
        rows = torch.stack(moved)
        h = h.index_copy(0, torch.tensor(choice), rows + attended(w, "states.talk", rows))
        averages.append(h.mean(0))
    return {"z": mapped(w, "z.linear", torch.stack(averages))}


def mixture_of_depths(w: Weights, x: Tensor) -> dict[str, Tensor]:
    scores, name = x @ w["score"], "z.transformer"
    choice = scores.topk(8).indices.sort().values
    taken = x[choice]
    h = attended(w, f"{name}.h.attention", normed(w, f"{name}.h.layer_norm", taken), causal=True)
    inner = F.gelu(mapped(w, f"{name}.y.linear", normed(w, f"{name}.y.layer_norm", taken + h)))
    y = h + mapped(w, f"{name}.y.linear2", inner)
    return {"z": x.index_add(0, choice, scores[choice, None].sigmoid() * y)}


def multi_gate(w: Weights, x: Tensor) -> dict[str, Tensor]:
    messages = torch.stack([mapped(w, f"expert.{j}.linear", x).relu() for j in range(3)])
    gates = [mapped(w, f"mixed.{t}.linear", x).softmax(-1) for t in range(2)]
    return {f"logits.{t}": mapped(w, f"logits.{t}.linear", gates[t] @ messages) for t in range(2)}


def neural_interpreter(w: Weights, x: Tensor) -> dict[str, Tensor]:
    def step(j: int, x: Tensor) -> Tensor:
        y = f"function.{j}.step.y"
        return mapped(w, f"{y}.linear2", F.gelu(mapped(w, f"{y}.linear", normed(w, f"{y}.layer_norm", x))))

    for _ in range(2):
        rows = []
        for token in x:
            type_ = mapped(w, "gate.type.linear2", mapped(w, "gate.type.linear", token).tanh())
            distance = 1 - F.cosine_similarity(type_, w["gate.signature"])
            near = [j for j in range(3) if distance[j] < 1.2]
            gates = (-distance / w["gate.bandwidth"]).exp()
            rows.append(token + sum((gates[j] / gates[near].sum() * step(j, token) for j in near), 0 * token))
        x = torch.stack(rows)
    return {"logits": mapped(w, "logits.linear", x.mean(0))}


def perceiver(w: Weights, x: Tensor) -> dict[str, Tensor]:
    z = w["latent"]
    for i in range(2):
        at = f"layer.{i}"
        z = z + attended(w, "read.attention", normed(w, f"{at}.norm", z), x)
        inner = F.gelu(mapped(w, f"{at}.after.y.linear", normed(w, f"{at}.after.y.layer_norm", z)))
        z = z + mapped(w, f"{at}.after.y.linear2", inner)
        z = z + attended(w, f"{at}.think", normed(w, f"{at}.norm2", z))
    return {"logits": mapped(w, "logits.linear", z.mean(0))}


PAPERS = (
    *papers_of_attention.PAPERS,
    *papers_of_ids.PAPERS,
    *papers_of_deepseek.PAPERS,
    *papers_of_recurrences.PAPERS,
    *papers_of_loops.PAPERS,
    deepseek_moe,
    hierarchical_mixture,
    mechanisms,
    mixture_of_depths,
    multi_gate,
    neural_interpreter,
    perceiver,
)


def random_value(type_: TensorType, examples: int = 3, length: int = 11) -> Tensor:
    shape = examples, *(axis.size or length for axis in type_.shape)
    return torch.randint(type_.size, shape) if type_.size else torch.randn(shape, dtype=torch.float64)


@pytest.mark.some(12)
@pytest.mark.parametrize("paper", PAPERS, ids=lambda each: each.__name__)
def test_it_computes_what_its_equations_say(paper: Any) -> None:
    model, weights = built(paper.__name__)
    ((name, type_),) = ((name, each) for name, each in model.graph.input_types.items() if each.dtype != "length")
    x = random_value(type_)
    lengths = {"time_length": torch.full((3,), 11)} if type_.padded else {}
    found = model.compute({name: x, **lengths}, losses=False).outputs
    for at, one in enumerate(x):
        for name, expected in paper(weights, one).items():
            torch.testing.assert_close(found[name][at], expected, rtol=1e-10, atol=1e-10)


def test_every_paper_here_is_tried() -> None:
    """`test_mt_rmn.py` tries its own."""
    assert {path.stem for path in HOME.glob("*.mod")} - {"mt_rmn_standalone"} == {paper.__name__ for paper in PAPERS}


@pytest.mark.parametrize("name", ACTIVE_SHARES)
def test_only_the_choice_is_counted_and_computed(name: str) -> None:
    cost = modgraph.load(HOME / f"{name}.mod").cost()
    (pool,) = (each for each in ("expert", "cell") if each in cost.nodes)
    assert cost.nodes[pool].active_macs == cost.nodes[pool].macs * ACTIVE_SHARES[name]
