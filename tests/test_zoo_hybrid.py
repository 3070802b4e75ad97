"""Published mixtures whose layers differ, gpt-oss and Qwen3-Next: against plain torch, in steps, and transformers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from modgraph.training.published import read_config
from modgraph.training.start.inherit import inherit_file
from modgraph.training.start.weight_map import read_map
from tests.papers.papers_of_attention import list_speeds, rotated, yarn
from tests.passes.test_incremental import agree
from tests.test_zoo import Weights, below
from tests.training.test_published import save_shards

YARN = {
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "factor": 8.0,
    "original_max_position_embeddings": 4096,
    "rope_type": "yarn",
    "truncate": False,
}
SHARED: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
CONFIGS: dict[str, dict[str, Any]] = {  # as published, with other sizes
    "gpt_oss": {
        **SHARED, "attention_bias": True, "head_dim": 8, "intermediate_size": 24, "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"], "num_local_experts": 4, "rms_norm_eps": 1e-5,
        "rope_scaling": YARN, "rope_theta": 150000, "sliding_window": 3, "swiglu_limit": 0.7,
    },
    "qwen3_next": {
        **SHARED, "attention_bias": False, "decoder_sparse_step": 1, "full_attention_interval": 2, "head_dim": 16,
        "intermediate_size": 99, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 6, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_value_head_dim": 5, "mlp_only_layers": [], "moe_intermediate_size": 12,
        "norm_topk_prob": True, "num_experts": 4, "num_hidden_layers": 2, "partial_rotary_factor": 0.25,
        "rms_norm_eps": 1e-3, "rope_scaling": None, "rope_theta": 1e7, "shared_expert_intermediate_size": 20,
    },
}  # fmt: skip
HUBS = sorted(CONFIGS)
SPREAD = {"gpt_oss": 0.3, "qwen3_next": 0.1}  # of random weights; with more, float32 is not exact to 1e-5
WORDS = torch.randint(50, (3, 9), generator=torch.Generator().manual_seed(0))
LIMIT, KEY, VALUE = 0.7, 6, 5


def list_attention_shapes(heads: int, groups: int, bias: bool) -> dict[str, tuple[int, ...]]:
    rows = {"q_proj": heads, "k_proj": groups, "v_proj": groups}
    found: dict[str, tuple[int, ...]] = {f"{name}.weight": (size, 32) for name, size in rows.items()}
    found |= {f"{name}.bias": (size,) for name, size in (*rows.items(), ("o_proj", 32)) if bias}
    return found


def list_shapes(hub: str) -> dict[str, tuple[int, ...]]:
    """The tensors of a published checkpoint."""
    found: dict[str, tuple[int, ...]] = {"lm_head.weight": (50, 32), "model.norm.weight": (32,)}
    found["model.embed_tokens.weight"] = (50, 32)
    for at in range(2):
        own: dict[str, tuple[int, ...]] = {f"{name}_layernorm.weight": (32,) for name in ("input", "post_attention")}
        if hub == "gpt_oss":
            attention = {**list_attention_shapes(32, 16, bias=True), "o_proj.weight": (32, 32), "sinks": (4,)}
            own |= {f"self_attn.{name}": shape for name, shape in attention.items()}
            own |= {"mlp.router.weight": (4, 32), "mlp.router.bias": (4,)}
            own |= {"mlp.experts.gate_up_proj": (4, 32, 48), "mlp.experts.gate_up_proj_bias": (4, 48)}
            own |= {"mlp.experts.down_proj": (4, 24, 32), "mlp.experts.down_proj_bias": (4, 32)}
        else:
            if at == 1:
                attention = {**list_attention_shapes(128, 32, bias=False), "o_proj.weight": (32, 64)}
                attention |= {"q_norm.weight": (16,), "k_norm.weight": (16,)}
                own |= {f"self_attn.{name}": shape for name, shape in attention.items()}
            else:
                own |= {"linear_attn.in_proj_qkvz.weight": (64, 32), "linear_attn.in_proj_ba.weight": (8, 32)}
                own |= {"linear_attn.conv1d.weight": (44, 1, 4), "linear_attn.norm.weight": (5,)}
                own |= {"linear_attn.A_log": (4,), "linear_attn.dt_bias": (4,), "linear_attn.out_proj.weight": (32, 20)}
            own |= {"mlp.gate.weight": (4, 32), "mlp.shared_expert_gate.weight": (1, 32)}
            for expert, hidden in (*((f"experts.{e}", 12) for e in range(4)), ("shared_expert", 20)):
                own |= {f"mlp.{expert}.{name}_proj.weight": (hidden, 32) for name in ("gate", "up")}
                own[f"mlp.{expert}.down_proj.weight"] = (32, hidden)
        found |= {f"model.layers.{at}.{name}": shape for name, shape in own.items()}
    return found


def published(hub: str) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {name: 0.4 * torch.randn(shape, generator=generator) for name, shape in list_shapes(hub).items()}


def begin(folder: Path, hub: str, unused: tuple[str, ...] = ()) -> Model:
    """The model of a published folder, with its parameters and all of its weights but the unused."""
    spec, map_ = f"specs/zoo/{hub}.mod", f"specs/zoo/{hub}_hub.yaml"
    model = modgraph.load(spec, **read_config(map_, str(folder), spec)).build(seed=0)
    inherited = inherit_file(model.graph, model.state_dict(), str(folder), read_map(map_, model.graph))
    assert inherited.fresh == inherited.copies == ()
    assert inherited.left == unused
    return model.eval()


@pytest.fixture(params=HUBS)
def hub(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(hub: str, tmp_path: Path) -> Path:
    save_shards(published(hub), tmp_path, 20)
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[hub]))
    return tmp_path


# ---------------------------------------------------------------- plain torch


def norm(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * scale


def mapped(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def attend(q: Tensor, k: Tensor, v: Tensor, window: int, sinks: Tensor | None = None) -> Tensor:
    """One example, [T, heads, width]; two heads share keys and values. A sink takes a share that goes nowhere."""
    rows = []
    for t in range(len(q)):
        heads = []
        for head in range(4):
            near = range(max(0, t - window + 1), t + 1)
            powers = torch.stack([(q[t, head] @ k[s, head // 2] / math.sqrt(q.shape[-1])).exp() for s in near])
            extra = 0 if sinks is None else sinks[head].exp()
            heads.append(powers / (powers.sum() + extra) @ v[near, head // 2])
        rows.append(torch.stack(heads))
    return torch.stack(rows)


def rotate_heads(x: Tensor, speeds: Tensor, strength: float = 1.0) -> Tensor:
    """[T, heads, width]; of each head as many numbers rotate as there are speeds, twice."""
    end = 2 * len(speeds)
    rows = [strength * rotated(each[..., :end], place, speeds) for place, each in enumerate(x)]
    return torch.cat((torch.stack(rows), x[..., end:]), -1)


def gpt_oss(w: Weights, words: Tensor) -> Tensor:
    speeds, strength = yarn(4, 150000, 4096, 8.0), 1 + 0.1 * math.log(8.0)
    x = w["model.embed_tokens.weight"][words]
    for at in range(2):
        of = below(w, f"model.layers.{at}.")
        h = norm(x, of["input_layernorm.weight"], 1e-5)
        q, k, v = (mapped(of, f"self_attn.{each}_proj", h).unflatten(-1, (-1, 8)) for each in "qkv")
        q, k = rotate_heads(q, speeds, strength), rotate_heads(k, speeds, strength)
        mixed = attend(q, k, v, 3 if at == 0 else len(x), of["self_attn.sinks"])
        x = x + mapped(of, "self_attn.o_proj", mixed.flatten(-2))
        rows, own = [], below(of, "mlp.experts.")
        for token in norm(x, of["post_attention_layernorm.weight"], 1e-5):
            best = mapped(of, "mlp.router", token).topk(2)
            total = torch.zeros_like(token)
            for share, e in zip(best.values.softmax(0), best.indices.tolist(), strict=True):
                both = token @ own["gate_up_proj"][e] + own["gate_up_proj_bias"][e]
                gate, up = both[::2].clamp(max=LIMIT), both[1::2].clamp(-LIMIT, LIMIT)
                h = gate * torch.sigmoid(1.702 * gate) * (up + 1)
                total = total + share * (h @ own["down_proj"][e] + own["down_proj_bias"][e])
            rows.append(total)
        x = x + torch.stack(rows)
    return mapped(w, "lm_head", norm(x, w["model.norm.weight"], 1e-5))


def gated_delta(w: Weights, h: Tensor) -> Tensor:
    """One example, head by head and step by step. A group holds queries, keys, values and gates of its two heads."""
    rows = mapped(w, "in_proj_qkvz", h).unflatten(-1, (2, -1))
    parts = [*rows.split([KEY, KEY, 2 * VALUE, 2 * VALUE], -1)]
    flat = F.pad(torch.cat([each.flatten(1) for each in parts[:3]], -1), (0, 0, 3, 0))
    filters = w["conv1d.weight"][:, 0]
    mixed = F.silu(torch.stack([(flat[t : t + 4] * filters.T).sum(0) for t in range(len(h))]))
    q, k, v = mixed.split([2 * KEY, 2 * KEY, 4 * VALUE], -1)
    open_ = parts[3].reshape(len(h), 4, VALUE)
    beta, late = (
        each.reshape(len(h), 4) for each in mapped(w, "in_proj_ba", h).unflatten(-1, (2, -1)).split([2, 2], -1)
    )
    heads = []
    for head in range(4):
        group, state, found = head // 2, h.new_zeros(VALUE, KEY), []
        for t in range(len(h)):
            query, key = (each[t, group * KEY : (group + 1) * KEY] for each in (q, k))
            query, key = (each / (each @ each + 1e-6).sqrt() for each in (query, key))
            fade = (-w["A_log"][head].exp() * F.softplus(late[t, head] + w["dt_bias"][head])).exp()
            state = state * fade
            error = v[t, head * VALUE : (head + 1) * VALUE] - state @ key
            state = state + beta[t, head].sigmoid() * torch.outer(error, key)
            found.append(norm(state @ query / math.sqrt(KEY), w["norm.weight"], 1e-3) * F.silu(open_[t, head]))
        heads.append(torch.stack(found))
    return mapped(w, "out_proj", torch.cat(heads, -1))


def gated_attention(w: Weights, h: Tensor) -> Tensor:
    q, open_ = mapped(w, "q_proj", h).unflatten(-1, (4, 32)).split(16, -1)
    k, v = (mapped(w, f"{each}_proj", h).unflatten(-1, (2, 16)) for each in "kv")
    q, k = (norm(each, 1 + w[f"{name}_norm.weight"], 1e-3) for name, each in (("q", q), ("k", k)))
    q, k = (rotate_heads(each, list_speeds(2, 1e7)) for each in (q, k))
    return mapped(w, "o_proj", (attend(q, k, v, len(h)) * open_.sigmoid()).flatten(-2))


def qwen3_next(w: Weights, words: Tensor) -> Tensor:
    x = w["model.embed_tokens.weight"][words]
    for at in range(2):
        of = below(w, f"model.layers.{at}.")
        h = norm(x, 1 + of["input_layernorm.weight"], 1e-3)
        x = x + (gated_delta(below(of, "linear_attn."), h) if at == 0 else gated_attention(below(of, "self_attn."), h))
        rows, own = [], below(of, "mlp.")
        for token in norm(x, 1 + of["post_attention_layernorm.weight"], 1e-3):
            best = mapped(own, "gate", token).topk(2)
            shares = zip(best.values.softmax(0), best.indices.tolist(), strict=True)
            parts = [(mapped(own, "shared_expert_gate", token).sigmoid(), "shared_expert")]
            parts += [(share, f"experts.{e}") for share, e in shares]
            each = [
                share
                * mapped(
                    own,
                    f"{name}.down_proj",
                    F.silu(mapped(own, f"{name}.gate_proj", token)) * mapped(own, f"{name}.up_proj", token),
                )
                for share, name in parts
            ]
            rows.append(torch.stack(each).sum(0))
        x = x + torch.stack(rows)
    return mapped(w, "lm_head", norm(x, 1 + w["model.norm.weight"], 1e-3))


def test_a_published_checkpoint_computes_what_plain_torch_does(hub: str, folder: Path) -> None:
    computed = {"gpt_oss": gpt_oss, "qwen3_next": qwen3_next}[hub]
    tensors = {name: each.double() for name, each in published(hub).items()}
    expected = torch.stack([computed(tensors, each) for each in WORDS])
    torch.testing.assert_close(begin(folder, hub).double()(WORDS), expected, atol=1e-8, rtol=1e-8)


# ---------------------------------------------------------------- steps


@pytest.mark.some(1)
def test_steps_give_what_the_whole_sequence_gives(hub: str, folder: Path) -> None:
    with torch.no_grad():
        agree(begin(folder, hub))


@pytest.mark.slow
def test_a_stepwise_bundle_writes_the_same_words(hub: str, folder: Path, tmp_path: Path) -> None:
    model = begin(folder, hub)
    prompts = [[5], [1, 2, 3, 4, 5, 6, 7], [9, 8, 9]]
    expected = model.generate(prompts, tokens=64)
    assert min(len({*each}) for each in expected) > 5, "the model repeats its words"
    modgraph.export(model, tmp_path / "m.onnx", stepwise=True, routing=True)
    assert Bundle(tmp_path / "m.onnx", threads=1).generate(prompts, tokens=64) == expected


# ---------------------------------------------------------------- transformers


def build_theirs(hub: str, config: Mapping[str, Any]) -> Any:
    import transformers

    kind = {"gpt_oss": "GptOss", "qwen3_next": "Qwen3Next"}[hub]
    return getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, f"{kind}Config")(**config))


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_a_checkpoint_that_transformers_writes_gives_its_logits_choices_and_words(hub: str, tmp_path: Path) -> None:
    given = {**CONFIGS[hub], "initializer_range": SPREAD[hub], "num_hidden_layers": 4, "eos_token_id": None}
    given |= {"full_attention_interval": 4, "layer_types": None}
    torch.manual_seed(0)
    theirs = build_theirs(hub, given).eval()
    with torch.no_grad():
        for weight in theirs.parameters():  # biases and scales differ from their starts
            weight.add_(0.3 * torch.randn_like(weight) if weight.dim() < 3 and weight.shape[0] < 50 else 0)
    theirs.save_pretrained(tmp_path, max_shard_size="40KB")
    assert len([*tmp_path.glob("*.safetensors")]) > 1
    model = begin(tmp_path, hub)
    with torch.no_grad():
        expected = theirs(input_ids=WORDS, output_router_logits=True)
        found = model.compute({"words": WORDS}, losses=False, routing=True)
    torch.testing.assert_close(found.outputs["logits"], expected.logits, atol=1e-5, rtol=1e-5)
    assert len(expected.router_logits) == 4
    for at, scores in enumerate(expected.router_logits):
        choices = torch.zeros_like(scores).scatter(1, scores.topk(2).indices, 1.0)
        assert found.routing[f"layers.{at}.expert.selected"].flatten(0, 1).equal(choices)
    for prompt in (WORDS[:1, :1], WORDS[1:2, :7], torch.arange(1, 41)[None]):
        settings = {"max_new_tokens": 64, "do_sample": False, "use_cache": True, "pad_token_id": 0}
        ids = theirs.generate(prompt, attention_mask=torch.ones_like(prompt), **settings)[0, prompt.shape[1] :]
        assert len({*ids.tolist()}) > 5, "it repeats its words"
        assert model.generate(prompt.tolist(), tokens=64) == [ids.tolist()]


# ---------------------------------------------------------------- refused configs

REFUSED = {
    "another strength": ("gpt_oss", {"rope_scaling": {**YARN, "mscale": 0.7}}, "mscale: 0.7"),
    "yarn in whole places": ("gpt_oss", {"rope_scaling": {**YARN, "truncate": True}}, "truncate: true"),
    "no yarn": ("gpt_oss", {"rope_scaling": {**YARN, "rope_type": "linear"}}, 'rope_type: "linear"'),
    "no window": ("gpt_oss", {"sliding_window": None}, "no value at sliding_window"),
    "a dense layer": ("qwen3_next", {"mlp_only_layers": [1]}, "mlp_only_layers: [1]"),
    "tied words": ("qwen3_next", {"tie_word_embeddings": True}, "tie_word_embeddings: true"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_config_that_the_spec_would_compute_otherwise_is_refused(kind: str, tmp_path: Path) -> None:
    hub, other, words = REFUSED[kind]
    (tmp_path / "config.json").write_text(json.dumps({**CONFIGS[hub], **other}))
    with pytest.raises(ModgraphError, match=r"MG5(39|45)") as caught:
        read_config(f"specs/zoo/{hub}_hub.yaml", str(tmp_path), f"specs/zoo/{hub}.mod")
    assert words in str(caught.value)


def test_layers_that_predict_a_further_token_are_left_behind(tmp_path: Path) -> None:
    ahead = {"fc": (32, 64), "norm": (32,), "layers.0.mlp.experts.0.up_proj": (12, 32), "layers.0.mlp.gate": (4, 32)}
    ahead |= {"layers.0.input_layernorm": (32,), "layers.0.mlp.shared_expert.up_proj": (20, 32)}
    tensors = {f"mtp.{name}.weight": torch.ones(shape) for name, shape in ahead.items()}
    save_shards({**published("qwen3_next"), **tensors}, tmp_path, 30)
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["qwen3_next"]))
    begin(tmp_path, "qwen3_next", unused=tuple(sorted(tensors)))
