"""DeepSeek-V3 and V2 in their published parametrisation, against plain torch under the published names."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.training.published import read_config
from modgraph.training.start.inherit import Inherited, inherit_file
from modgraph.training.start.weight_map import read_map
from tests.test_zoo import Weights, below
from tests.training.test_published import save_shards

SPEC = "specs/zoo/deepseek_v3.mod"
V3: dict[str, Any] = {  # the keys of a config.json
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "moe_intermediate_size": 16,
    "num_hidden_layers": 3,
    "first_k_dense_replace": 1,
    "num_attention_heads": 4,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 10,
    "n_routed_experts": 16,
    "n_shared_experts": 2,
    "num_experts_per_tok": 4,
    "n_group": 4,
    "topk_group": 2,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000,
    "hidden_act": "silu",
}
YARN = {
    "type": "yarn",
    "factor": 40,
    "original_max_position_embeddings": 64,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 0.7,
    "mscale_all_dim": 1.0,
}
V2 = {**V3, "norm_topk_prob": False, "routed_scaling_factor": 4.0}
PLAIN = {"q_lora_rank": None, "n_group": 1, "topk_group": 1}  # as Moonlight, and DeepSeek-V2-Lite
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "three": ("deepseek_v3", {**V3, "rope_scaling": YARN}),
    "three, plain": ("deepseek_v3", {**V3, **PLAIN}),
    "two": ("deepseek_v2", {**V2, "rope_scaling": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}}),
    "two, plain": ("deepseek_v2", {**V2, **PLAIN, "first_k_dense_replace": 0}),
}
WORDS = torch.randint(50, (2, 24), generator=torch.Generator().manual_seed(0))


def published(hub: str, config: dict[str, Any]) -> dict[str, Tensor]:
    """Random weights under the published names, of the sizes in a config, and two of the layer that predicts ahead."""
    of = lambda *names: tuple(sum(config[each] for each in name.split("+")) for name in names)  # noqa: E731
    dim, heads = config["hidden_size"], config["num_attention_heads"]
    query, key, value = of("qk_nope_head_dim+qk_rope_head_dim", "kv_lora_rank+qk_rope_head_dim", "v_head_dim")
    sizes = {"model.embed_tokens.weight": (50, dim), "lm_head.weight": (50, dim), "model.norm.weight": (dim,)}
    for at in range(config["num_hidden_layers"]):
        layer, rank, latent = f"model.layers.{at}", config["q_lora_rank"], config["kv_lora_rank"]
        sizes |= {f"{layer}.{name}_layernorm.weight": (dim,) for name in ("input", "post_attention")}
        queries = {"q_a_proj": (rank, dim), "q_a_layernorm": (rank,), "q_b_proj": (heads * query, rank)}
        own = {
            **(queries if rank else {"q_proj": (heads * query, dim)}),
            "kv_a_proj_with_mqa": (key, dim),
            "kv_a_layernorm": (latent,),
            "kv_b_proj": (heads * (config["qk_nope_head_dim"] + value), latent),
            "o_proj": (dim, heads * value),
        }
        sizes |= {f"{layer}.self_attn.{name}.weight": size for name, size in own.items()}
        parts = {"mlp": config["intermediate_size"]}
        if at >= config["first_k_dense_replace"]:
            hidden = config["moe_intermediate_size"]
            parts = {f"mlp.experts.{expert}": hidden for expert in range(config["n_routed_experts"])}
            parts["mlp.shared_experts"] = hidden * config["n_shared_experts"]
            sizes[f"{layer}.mlp.gate.weight"] = (config["n_routed_experts"], dim)
            sizes |= (
                {f"{layer}.mlp.gate.e_score_correction_bias": (config["n_routed_experts"],)} if hub[-1] == "3" else {}
            )
        for name, hidden in parts.items():
            sizes |= {f"{layer}.{name}.{matrix}_proj.weight": (hidden, dim) for matrix in ("gate", "up")}
            sizes[f"{layer}.{name}.down_proj.weight"] = (dim, hidden)
    if hub == "deepseek_v3":
        sizes |= {
            "model.layers.61.eh_proj.weight": (dim, 2 * dim),
            "model.layers.61.mlp.experts.3.up_proj.weight": (3, 3),
        }
    generator = torch.Generator().manual_seed(1)
    return {name: 0.3 * torch.randn(size, generator=generator) for name, size in sizes.items()}


def begun(folder: Path, hub: str) -> tuple[Model, Inherited]:
    """The model of a published folder, with its parameters and weights."""
    by = f"specs/zoo/{hub}_hub.yaml"
    model = modgraph.load(SPEC, **read_config(by, str(folder), SPEC)).build(seed=0)
    return model.eval(), inherit_file(model.graph, model.state_dict(), str(folder), read_map(by, model.graph))


def waves(config: dict[str, Any]) -> tuple[Tensor, float, float]:
    """The angles of a position, what multiplies rotated numbers, and what multiplies scores (YaRN, section 3)."""
    width, scaling = config["qk_rope_head_dim"], config.get("rope_scaling")
    angles = config["rope_theta"] ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    if scaling is None:
        return angles, 1.0, 1.0
    number = lambda cycles: (  # noqa: E731 - of the pair that makes so many cycles in training
        width
        * math.log(scaling["original_max_position_embeddings"] / (cycles * 2 * math.pi))
        / (2 * math.log(config["rope_theta"]))
    )
    low, high = max(math.floor(number(scaling["beta_fast"])), 0), math.ceil(number(scaling["beta_slow"]))
    scaled = ((torch.arange(width // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    turned, all_ = (0.1 * scaling[name] * math.log(scaling["factor"]) + 1 for name in ("mscale", "mscale_all_dim"))
    return angles * (1 - scaled) + angles / scaling["factor"] * scaled, turned / all_, all_**2


def attention(w: Weights, x: Tensor, config: dict[str, Any]) -> Tensor:
    """Equations 1 to 11, pairs of neighbours rotated as complex numbers; x is [T, D]."""
    heads, plain = config["num_attention_heads"], config["qk_nope_head_dim"]
    angles, size, scale = waves(config)
    rotation = torch.polar(torch.tensor(size, dtype=torch.float64), torch.outer(torch.arange(len(x)), angles))
    pairs = lambda x: torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * rotation  # noqa: E731
    normed = lambda name, x: F.rms_norm(x, x.shape[-1:], w[f"{name}_layernorm.weight"], 1e-6)  # noqa: E731
    mapped = lambda name, x: x @ w[f"{name}.weight"].T  # noqa: E731
    queries = mapped("q_b_proj", normed("q_a", mapped("q_a_proj", x))) if config["q_lora_rank"] else mapped("q_proj", x)
    q = queries.unflatten(-1, (heads, -1)).transpose(0, 1)
    latent, shared = mapped("kv_a_proj_with_mqa", x).split([config["kv_lora_rank"], config["qk_rope_head_dim"]], -1)
    k, v = (
        mapped("kv_b_proj", normed("kv_a", latent))
        .unflatten(-1, (heads, -1))
        .transpose(0, 1)
        .split([plain, config["v_head_dim"]], -1)
    )
    scores = q[..., :plain] @ k.transpose(-1, -2) + (pairs(q[..., plain:]) @ pairs(shared).conj().T).real
    later = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    shares = (scale * scores / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf).softmax(-1)
    return mapped("o_proj", (shares @ v).transpose(0, 1).flatten(1))


def swiglu(w: Weights, x: Tensor) -> Tensor:
    return (F.silu(x @ w["gate_proj.weight"].T) * (x @ w["up_proj.weight"].T)) @ w["down_proj.weight"].T


def mixture(w: Weights, token: Tensor, config: dict[str, Any], hub: str) -> Tensor:
    """Equations 12 to 16 for a token: the best experts of the best groups, and the shared ones."""
    logits, groups = w["gate.weight"] @ token, config["n_group"]
    scores = logits.sigmoid() if hub == "deepseek_v3" else logits.softmax(-1)
    biased = scores + w.get("gate.e_score_correction_bias", torch.zeros(()))
    leading = biased.view(groups, -1).topk(2 if hub == "deepseek_v3" else 1).values.sum(-1)
    near = leading.topk(config["topk_group"]).indices.tolist()
    each = len(scores) // groups
    order = sorted((at for at in range(len(scores)) if at // each in near), key=lambda at: -float(biased[at]))
    best = order[: config["num_experts_per_tok"]]
    total = scores[best].sum() if config["norm_topk_prob"] else 1.0
    routed = [scores[at] / total * swiglu(below(w, f"experts.{at}."), token) for at in best]
    return config["routed_scaling_factor"] * torch.stack(routed).sum(0) + swiglu(below(w, "shared_experts."), token)


def deepseek(w: Weights, words: Tensor, config: dict[str, Any], hub: str) -> Tensor:
    """The logits of one text."""
    normed = lambda name, x: F.rms_norm(x, x.shape[-1:], w[f"{name}.weight"], config["rms_norm_eps"])  # noqa: E731
    x = w["model.embed_tokens.weight"][words]
    for at in range(config["num_hidden_layers"]):
        layer = f"model.layers.{at}"
        x = x + attention(below(w, f"{layer}.self_attn."), normed(f"{layer}.input_layernorm", x), config)
        z, own = normed(f"{layer}.post_attention_layernorm", x), below(w, f"{layer}.mlp.")
        is_dense = at < config["first_k_dense_replace"]
        x = x + (swiglu(own, z) if is_dense else torch.stack([mixture(own, token, config, hub) for token in z]))
    return normed("model.norm", x) @ w["lm_head.weight"].T


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_published_checkpoint_computes_what_plain_torch_does(kind: str, tmp_path: Path) -> None:
    hub, config = CONFIGS[kind]
    tensors = published(hub, config)
    save_shards(tensors, tmp_path, 40)
    (tmp_path / "config.json").write_text(json.dumps(config))
    model, inherited = begun(tmp_path, hub)
    assert len(inherited.left) == (2 if hub == "deepseek_v3" else 0)  # the layer that predicts ahead
    assert all("bias" in name for name in inherited.fresh)
    assert (hub == "deepseek_v3") == (not inherited.fresh)
    w = {name: each.double() for name, each in tensors.items()}
    expected = torch.stack([deepseek(w, text, config, hub) for text in WORDS])
    torch.testing.assert_close(model.double()(WORDS), expected, atol=1e-8, rtol=1e-8)


def test_a_bias_rises_where_an_expert_gets_few_tokens_and_counts_only_in_the_choice() -> None:
    model = modgraph.load(SPEC, bias_update_speed=0.5, norm_topk_prob=False).build(seed=0).train()
    found = model.compute({"words": WORDS, "next": WORDS, "time_length": torch.tensor([24, 9])}, routing=True)
    choice = found.routing["layers.1.expert.choice"].detach()
    load = torch.cat((choice[0], choice[1, :9])).mean(0)
    expected = 0.5 * (load.mean() - load).sign()
    assert {*expected.tolist()} >= {-0.5, 0.5}
    moved = model.state_dict()["layers.1.gate.bias.value"]
    torch.testing.assert_close(moved, expected)
    again = model.eval().compute({"words": WORDS}, losses=False, routing=True)
    of = {name: again.routing[f"layers.1.expert.{name}"] for name in ("gates", "scores", "choice")}
    assert not of["choice"].equal(choice)
    torch.testing.assert_close(of["gates"], 2.5 * of["choice"] * of["scores"])
    assert all("balance" not in name for name in found.losses)
