"""Checkpoints that transformers writes: its logits, its choices of experts and the tokens that it continues with.

They run where the package is installed (`pip install -e '.[bench]'`), those with bundles under `--slow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle
from torch import Tensor, nn

import modgraph
from modgraph.backends.torch import Model
from modgraph.training.published import read_config
from modgraph.training.start.inherit import inherit_file
from modgraph.training.start.weight_map import read_map
from tests import test_zoo_deepseek, test_zoo_text

pytestmark = pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
V3, V2, PLAIN, YARN = (getattr(test_zoo_deepseek, name) for name in ("V3", "V2", "PLAIN", "YARN"))
KINDS: dict[
    str, tuple[str, str, str, dict[str, Any]]
] = {  # a class of transformers, spec, map and the keys of config.json
    "mixtral": ("Mixtral", "mixtral", "mixtral", {}),
    "qwen2": ("Qwen2Moe", "mixtral", "qwen2", {}),
    "qwen3": ("Qwen3Moe", "mixtral", "qwen3", {}),
    "olmoe": ("Olmoe", "olmoe", "olmoe", {}),
    "deepseek v3": ("DeepseekV3", "deepseek_v3", "deepseek_v3", {**V3, "rope_scaling": {**YARN, "mscale": 1.0}}),
    "deepseek v3, other scales": ("DeepseekV3", "deepseek_v3", "deepseek_v3", {**V3, "rope_scaling": YARN}),
    "deepseek v3, plain": ("DeepseekV3", "deepseek_v3", "deepseek_v3", {**V3, **PLAIN, "rope_interleave": False}),
    "deepseek v2": (
        "DeepseekV2",
        "deepseek_v3",
        "deepseek_v2",
        {**V2, "topk_method": "group_limited_greedy", "rope_scaling": YARN},
    ),
    "deepseek v2, plain": ("DeepseekV2", "deepseek_v3", "deepseek_v2", {**V2, **PLAIN}),
}
WORDS = torch.randint(50, (2, 40), generator=torch.Generator().manual_seed(0))


@dataclass(frozen=True)
class Pair:
    """A model of transformers, and ours from the checkpoint that it wrote."""

    theirs: Any
    model: Model

    def compute(self) -> tuple[Tensor, list[Tensor]]:
        """Their logits, and the experts [N, k] that each layer chooses."""
        choices: list[Tensor] = []
        routers = [each for each in self.theirs.modules() if type(each).__name__.lower().endswith("topkrouter")]
        hooks = [each.register_forward_hook(lambda _, __, result: choices.append(result[-1])) for each in routers]
        with torch.no_grad():
            logits = self.theirs(input_ids=WORDS).logits
        for hook in hooks:
            hook.remove()
        assert len(choices) == len(routers) > 1
        return logits, choices

    def continue_texts(self, prompt: int, tokens: int) -> list[list[int]]:
        """Their likeliest tokens after the first words of each text, with a cache."""
        settings: dict[str, Any] = {"do_sample": False, "use_cache": True, "eos_token_id": None, "pad_token_id": 0}
        ids = WORDS[:, :prompt]
        mask = torch.ones_like(ids)
        found = self.theirs.generate(ids, attention_mask=mask, max_new_tokens=tokens, **settings)
        return found[:, prompt:].tolist()


def write_pair(kind: str, folder: Path) -> Pair:
    """Let transformers write a random model in shards, and load them."""
    import transformers

    of, spec, hub, config = KINDS[kind]
    given = config or {**test_zoo_text.CONFIGS[hub], "num_hidden_layers": 3}
    torch.manual_seed(0)
    given = {**given, "initializer_range": 0.2, "max_position_embeddings": 256}
    theirs = getattr(transformers, f"{of}ForCausalLM")(getattr(transformers, f"{of}Config")(**given)).eval()
    for name, each in theirs.named_buffers():
        if name.endswith("e_score_correction_bias"):
            nn.init.uniform_(each, -0.3, 0.3)
    theirs.save_pretrained(folder, max_shard_size="40KB")
    assert len([*folder.glob("*.safetensors")]) > 1
    path, by = f"specs/zoo/{spec}.mod", f"specs/zoo/{hub}_hub.yaml"
    model = modgraph.load(path, **read_config(by, str(folder), path)).build(seed=0)
    inherited = inherit_file(model.graph, model.state_dict(), str(folder), read_map(by, model.graph))
    assert inherited.left == ()
    assert all(name.endswith("gate.bias.value") and hub == "deepseek_v2" for name in inherited.fresh)
    return Pair(theirs, model.eval())


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    yield write_pair(request.param, tmp_path_factory.mktemp("written"))


def assert_equal_choices(found: dict[str, Any], expected: list[Tensor]) -> None:
    """The choices recorded of all routes, [B, T, E] in order, are these experts."""
    records = [np.asarray(found[name]) for name in found if name.endswith((".choice", ".selected"))]
    for record, ids in zip(records, expected, strict=True):
        rows = record.reshape(-1, record.shape[-1])
        np.testing.assert_array_equal(rows != 0, torch.zeros(rows.shape).scatter(1, ids, 1.0).numpy() != 0)


def test_logits_and_every_choice_are_theirs(pair: Pair) -> None:
    logits, choices = pair.compute()
    found = pair.model.compute({"words": WORDS}, losses=False, routing=True)
    torch.testing.assert_close(found.outputs["logits"], logits, atol=1e-5, rtol=1e-5)
    assert_equal_choices(found.routing, choices)


@pytest.mark.some(9)
@pytest.mark.parametrize("prompt", [1, 7, 40])
def test_it_continues_texts_as_they_do(pair: Pair, prompt: int) -> None:
    expected = pair.continue_texts(prompt, 64)
    assert len({*expected[0], *expected[1]}) > 5, "the model repeats few tokens"
    assert pair.model.generate(WORDS[:, :prompt].tolist(), tokens=64) == expected


@pytest.mark.slow
def test_a_stepwise_bundle_computes_and_continues_as_they_do(pair: Pair, tmp_path: Path) -> None:
    modgraph.export(pair.model, tmp_path / "m.onnx", stepwise=True, routing=True)
    bundle = Bundle(tmp_path / "m.onnx", threads=1)
    logits, choices = pair.compute()
    found = bundle.run({"words": WORDS.numpy()}, routing=True)
    np.testing.assert_allclose(found["logits"], logits.numpy(), atol=1e-5, rtol=1e-5)
    assert_equal_choices(found, choices)
    for prompt in (1, 7, 40):
        assert bundle.generate(WORDS[:, :prompt].tolist(), tokens=64) == pair.continue_texts(prompt, 64)
