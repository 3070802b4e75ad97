"""Published mixtures on text, each written down on one screen: against plain torch, by published names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.cli import main
from modgraph.store.journal import read_metrics
from modgraph.store.run_directory import RunDirectory
from modgraph.training.published import read_config
from modgraph.training.run import finish, start_run
from modgraph.training.start.inherit import inherit_file
from modgraph.training.start.weight_map import read_map
from modgraph.training.stored_run import load_run
from tests.test_zoo import below
from tests.training.test_published import save_shards

Weights = Mapping[str, Tensor]
MIXTRAL = "specs/zoo/mixtral.mod"
SHARED: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "rope_theta": 1e6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
QWEN: dict[str, Any] = {"num_experts": 4, "moe_intermediate_size": 64, "intermediate_size": 99, "rms_norm_eps": 1e-6}
CONFIGS: dict[str, dict[str, Any]] = {  # the keys of each config.json
    "mixtral": {**SHARED, "num_local_experts": 4, "intermediate_size": 64, "rms_norm_eps": 1e-5},
    "qwen2": {**SHARED, **QWEN, "norm_topk_prob": False, "shared_expert_intermediate_size": 24},
    "qwen3": {**SHARED, **QWEN, "norm_topk_prob": True, "head_dim": 8},
    "olmoe": {**SHARED, "num_key_value_heads": 4, "num_experts": 4, "intermediate_size": 64, "rms_norm_eps": 1e-5},
}
CONFIGS["olmoe"]["norm_topk_prob"] = False
WORDS = torch.randint(50, (3, 7), generator=torch.Generator().manual_seed(0))


def names_of(hub: str) -> tuple[str, str, str, str]:
    """What the mixture is called, and its experts' three matrices: gate, up, down."""
    return ("block_sparse_moe", "w1", "w3", "w2") if hub == "mixtral" else ("mlp", "gate_proj", "up_proj", "down_proj")


def published(hub: str, layers: int = 2) -> dict[str, Tensor]:
    """Random weights under the names of a hub, of the sizes in its config."""
    generator = torch.Generator().manual_seed(1)
    sizes = {"model.embed_tokens.weight": (50, 32), "lm_head.weight": (50, 32), "model.norm.weight": (32,)}
    mixture, *matrices = names_of(hub)
    groups = 8 * CONFIGS[hub]["num_key_value_heads"]
    for at in range(layers):
        layer = f"model.layers.{at}"
        own = {
            "q_proj.weight": (32, 32),
            "k_proj.weight": (groups, 32),
            "v_proj.weight": (groups, 32),
            "o_proj.weight": (32, 32),
        }
        normed = {"qwen3": 8, "olmoe": 32}
        own |= {"q_norm.weight": (normed[hub],), "k_norm.weight": (normed[hub],)} if hub in normed else {}
        own |= {"q_proj.bias": (32,), "k_proj.bias": (groups,), "v_proj.bias": (groups,)} if hub == "qwen2" else {}
        sizes |= {f"{layer}.self_attn.{name}": size for name, size in own.items()}
        sizes |= {f"{layer}.{name}.weight": (32,) for name in ("input_layernorm", "post_attention_layernorm")}
        sizes[f"{layer}.{mixture}.gate.weight"] = (4, 32)
        experts = {f"{mixture}.experts.{expert}": 64 for expert in range(4)}
        if hub == "qwen2":
            experts["mlp.shared_expert"] = 24
            sizes[f"{layer}.mlp.shared_expert_gate.weight"] = (1, 32)
        for (name, hidden), matrix in product(experts.items(), matrices):
            sizes[f"{layer}.{name}.{matrix}.weight"] = (32, hidden) if matrix == matrices[2] else (hidden, 32)
    return {name: 0.3 * torch.randn(size, generator=generator) for name, size in sizes.items()}


def begun(folder: Path, hub: str) -> Model:
    """The model of a published folder, with its parameters and all of its weights."""
    spec, weights_by = "specs/zoo/olmoe.mod" if hub == "olmoe" else MIXTRAL, f"specs/zoo/{hub}_hub.yaml"
    model = modgraph.load(spec, **read_config(weights_by, str(folder), spec)).build(seed=0)
    answer = inherit_file(model.graph, model.state_dict(), str(folder), read_map(weights_by, model.graph))
    assert answer.fresh == answer.left == ()
    return model.eval()


def mixtral(w: Weights, words: Tensor, hub: str, layers: int = 2) -> Tensor:
    """The decoder in plain torch, by the names of the hub: one token of one example at a time where it routes."""
    eps = CONFIGS[hub]["rms_norm_eps"]
    norm = lambda x, name: x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * w[f"{name}.weight"]  # noqa: E731
    mixture, *matrices = names_of(hub)
    x = w["model.embed_tokens.weight"][words]
    for at in range(layers):
        layer = f"model.layers.{at}"
        of = below(w, f"{layer}.self_attn.")
        h = norm(x, f"{layer}.input_layernorm")
        mapped = [h @ of[f"{name}_proj.weight"].T + of.get(f"{name}_proj.bias", torch.zeros(())) for name in "qkv"]
        if hub == "olmoe":
            mapped[:2] = (
                norm(each, f"{layer}.self_attn.{name}_norm") for name, each in zip("qk", mapped, strict=False)
            )
        q, k, v = (each.unflatten(-1, (-1, 8)).transpose(1, 2) for each in mapped)
        if hub == "qwen3":
            q, k = norm(q, f"{layer}.self_attn.q_norm"), norm(k, f"{layer}.self_attn.k_norm")
        q, k = rotated(q), rotated(k)
        k, v = (each.repeat_interleave(4 // each.shape[1], 1) for each in (k, v))
        later = torch.ones(words.shape[1], words.shape[1], dtype=torch.bool).triu(1)
        shares = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(later, -torch.inf).softmax(-1)
        x = x + (shares @ v).transpose(1, 2).flatten(2) @ of["o_proj.weight"].T
        z = norm(x, f"{layer}.post_attention_layernorm").flatten(0, 1)
        x = x + mixture_of(below(w, f"{layer}.{mixture}."), z, matrices, hub).view_as(x)
    return norm(x, "model.norm") @ w["lm_head.weight"].T


def mixture_of(w: Weights, z: Tensor, matrices: Sequence[str], hub: str) -> Tensor:
    """Two experts for each token, and of Qwen2 the one that all share."""
    found = []
    for token in z:
        scores = w["gate.weight"] @ token
        best, choice = scores.topk(2)
        gates = best.softmax(-1) if hub in ("mixtral", "qwen3") else scores.softmax(-1)[choice]
        parts = {f"experts.{expert}": gate for gate, expert in zip(gates, choice.tolist(), strict=True)}
        if hub == "qwen2":
            parts["shared_expert"] = (w["shared_expert_gate.weight"] @ token).sigmoid()
        total = torch.zeros_like(token)
        for name, gate in parts.items():
            one, up, down = (w[f"{name}.{matrix}.weight"] for matrix in matrices)
            total = total + gate * (down @ (F.silu(one @ token) * (up @ token)))
        found.append(total)
    return torch.stack(found)


def rotated(x: Tensor, base: float = 1e6) -> Tensor:
    """Pairs as complex numbers, turned."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(half, dtype=x.dtype) / half)
    turned = torch.complex(*x.split(half, -1)) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((turned.real, turned.imag), -1)


@pytest.mark.some(2)
@pytest.mark.parametrize("hub", CONFIGS)
def test_a_published_checkpoint_computes_what_plain_torch_does(hub: str, tmp_path: Path) -> None:
    tensors = published(hub)
    save_shards(tensors, tmp_path, 20)
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[hub]))
    model = begun(tmp_path, hub).double()
    expected = mixtral({name: each.double() for name, each in tensors.items()}, WORDS, hub)
    torch.testing.assert_close(model(WORDS), expected, atol=1e-8, rtol=1e-8)


@pytest.mark.some(1)
@pytest.mark.parametrize("pools", ["stored", "modules"])
def test_a_run_of_no_epochs_has_the_weights_of_a_published_folder(pools: str, tmp_path: Path) -> None:
    tensors = published("qwen3")
    save_shards({name: each.bfloat16() for name, each in tensors.items()}, tmp_path, 20)
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["qwen3"]))
    (tmp_path / "text").write_text(" ".join(f"w{at % 60}" for at in range(900)))
    recipe = {
        "start": {"weights": str(tmp_path), "map": "specs/zoo/qwen3_hub.yaml"},
        "data": {"name": "text", "train": str(tmp_path / "text")},
        "train": {"epochs": 0, "pools": pools},
    }
    with start_run(MIXTRAL, recipe, {}, str(tmp_path / "run")) as engine:
        assert finish(engine)["test.perplexity"] > 1
    run = load_run(tmp_path / "run")
    assert run.graph.parameters["qk_norm"] is run.recipe.model["qk_norm"] is True
    assert json.loads((tmp_path / "run/start.json").read_text())["left"] == []
    words = torch.arange(20)[None]
    found = run.model().double()(words)
    rounded = {name: each.bfloat16().double() for name, each in tensors.items()}
    torch.testing.assert_close(found, mixtral(rounded, words, "qwen3"), atol=1e-8, rtol=1e-8)


def switch(w: Weights, words: Tensor, training: bool, depth: int, capacity: float) -> tuple[Tensor, Tensor]:
    """The logits in plain torch, one token at a time where it routes, and the sum of the balances."""
    norm = lambda x, name: x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * w[f"{name}.rms_norm.weight"]  # noqa: E731
    time, balance = words.shape[1], torch.zeros((), dtype=torch.float64)
    x = w["x.embedding.weight"][words]
    back = torch.arange(time)[:, None] - torch.arange(time)
    for at in range(depth):
        block = f"blocks.{at}"
        qkv = norm(x, f"{block}.x") @ w[f"{block}.x.attention.qkv.weight"].T
        q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2) for each in qkv.chunk(3, -1))
        bias = w[f"{block}.x.attention.relative.weight"][back.clamp(min=0)].permute(2, 0, 1)  # exact below 16
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias).masked_fill(back < 0, -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = x + mixed @ w[f"{block}.x.attention.out.weight"].T
        h = norm(x, f"{block}.h").flatten(0, 1)
        if at % 2 == 0:
            found = F.relu(h @ w[f"{block}.dense.linear.weight"].T) @ w[f"{block}.dense.linear2.weight"].T
        else:
            p = (h @ w[f"{block}.probabilities.linear.weight"].T).softmax(-1)
            room = [int(capacity * -(-len(h) // 4))] * 4
            found = torch.zeros_like(h)
            for token, expert in enumerate(p.argmax(-1).tolist()):
                if room[expert] > 0 or not training:
                    room[expert] -= 1
                    up, down = (w[f"{block}.expert.{expert}.{name}.weight"] for name in ("linear", "linear2"))
                    found[token] = p[token, expert] * (down @ F.relu(up @ h[token]))
            balance = balance + 0.01 * 4 * (p.argmax(-1).bincount(minlength=4).double() / len(h) * p.mean(0)).sum()
        x = x + found.view_as(x)
    return norm(x, "logits") @ w["logits.linear.weight"].T, balance


@pytest.mark.parametrize("training", [True, False])
def test_switch_computes_what_plain_torch_does_dropping_tokens_in_training(training: bool) -> None:
    model = modgraph.load("specs/zoo/switch.mod", vocabulary=50, depth=4).build(seed=3).double().train(training)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.mul_(10 if "embedding" in name else 2)  # so that all differ: attention, choices, gates
    found = model.compute({"words": WORDS, "next": WORDS, "time_length": torch.tensor([7, 7, 7])})
    logits, balance = switch(model.state_dict(), WORDS, training, depth=4, capacity=1.25)
    assert not torch.allclose(logits, switch(model.state_dict(), WORDS, not training, depth=4, capacity=1.25)[0])
    torch.testing.assert_close(found.outputs["logits"], logits, atol=1e-10, rtol=1e-10)
    balances = [loss for name, loss in found.losses.items() if "balance" in name]
    torch.testing.assert_close(sum(balances), balance, atol=1e-10, rtol=1e-10)


def test_a_balanced_choice_costs_least() -> None:
    """E · Σ f P is k where all experts are used alike, and k experts that take everything cost E times their share."""
    text = """model m() { input f: float[time, 4] output y = f
      loss 4 * sum(batch_mean(f) * batch_mean(f), axis=-1) }"""
    model = modgraph.loads(text).build()
    f = torch.tensor([[[1.0, 0, 0, 0], [0, 1.0, 0, 0]], [[0, 0, 1.0, 0], [7, 7, 7, 7]]])
    loss = model.compute({"f": f, "time_length": torch.tensor([2, 1])}).loss
    torch.testing.assert_close(loss, torch.tensor(4 * 3 / 9))


FEW: dict[str, dict[str, Any]] = {
    "mixtral": {"vocab_size": 13, "num_hidden_layers": 1, "hidden_size": 16, "head_dim": 4, "num_local_experts": 3},
    "olmoe": {"vocab_size": 13, "num_hidden_layers": 1, "hidden_size": 16, "num_experts": 3},
    "switch": {"vocabulary": 13, "dim": 16, "experts": 3},
    "deepseek_v3": {"vocab_size": 13, "hidden_size": 16, "n_routed_experts": 6, "n_group": 3, "num_experts_per_tok": 2},
    "gpt_oss": {"vocab_size": 13, "hidden_size": 16, "num_local_experts": 3, "num_experts_per_tok": 2},
    "qwen3_next": {"vocab_size": 13, "hidden_size": 16, "num_experts": 3},
}
SLOW = [each for each in FEW if each != "mixtral"]


@pytest.mark.parametrize("name", ["mixtral", *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)])
def test_it_learns_words_and_is_exported(name: str, tmp_path: Path) -> None:
    lines = [" ".join(f"w{(at * step) % 11}" for at in range(12)) for step in range(1, 40)]
    (tmp_path / "text").write_text("\n".join(lines))
    few = {f"model.{parameter}": value for parameter, value in FEW[name].items()}
    few |= {"data.train": str(tmp_path / "text"), "data.window": 8, "train.epochs": 3}
    with start_run(f"specs/zoo/{name}.mod", None, few, str(tmp_path / "run")) as engine:
        finish(engine)
    measured = read_metrics(RunDirectory(tmp_path / "run"))
    losses = [record["total_loss"] for record in measured if record["split"] == "train"]
    assert losses[-1] < losses[0]
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "m.onnx")]) == 0
