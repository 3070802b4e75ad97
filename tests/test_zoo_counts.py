"""The parameters of published models, as the guide lists them and as the classes of transformers have them."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import modgraph
from modgraph.inspect.cost import Cost
from modgraph.training.published import read_config

GUIDE = Path("docs/guides/published-weights.md")
ROW = re.compile(r"^\| `(\w+)\.json` \| `(\w+\.mod)` \| `(\w+\.yaml)` \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)
MODELS = {name: row for name, *row in ROW.findall(GUIDE.read_text())}
ROUNDED = {  # as published: parameters, and those active for a token, in billions
    "mixtral_8x7b": (46.7, 12.9),
    "qwen15_moe_a27b": (14.3, 2.7),
    "qwen3_30b_a3b": (30.5, 3.3),
    "qwen3_235b_a22b": (235, 22),
    "olmoe_1b_7b": (6.9, 1.3),
    "deepseek_v2_lite": (15.7, 2.4),
    "deepseek_v3": (671, 37),
    "gpt_oss_20b": (20.9, 3.6),
    "gpt_oss_120b": (117, 5.1),
    "qwen3_next_80b_a3b": (79.7, 3.9),
}
LONG = ("qwen15_moe_a27b", "qwen3_235b_a22b", "deepseek_v2_lite", "gpt_oss_120b", "qwen3_next_80b_a3b")
BRIEF = [pytest.param(each, marks=[pytest.mark.slow] * (each in LONG)) for each in MODELS]


def count_active(cost: Cost) -> int:
    """Parameters outside the pools, and those of the chosen modules."""
    routes = {name: own for name, own in cost.own.items() if own.active_macs < own.macs}
    assert routes
    idle = [cost.nodes[name].parameters * (own.macs - own.active_macs) // own.macs for name, own in routes.items()]
    return cost.parameters - sum(idle)


@pytest.mark.some(4)
@pytest.mark.parametrize("name", BRIEF)
def test_a_published_config_has_the_published_number_of_parameters(name: str) -> None:
    spec, by, parameters, active = MODELS[name]
    given = read_config(f"specs/zoo/{by}", f"specs/zoo/published/{name}.json", f"specs/zoo/{spec}")
    cost = modgraph.load(f"specs/zoo/{spec}", **given).cost()
    assert (f"{cost.parameters:,}", f"{count_active(cost):,}") == (parameters, active)
    whole, used = ROUNDED[name]
    assert cost.parameters / 1e9 == pytest.approx(whole, abs=0.05 if whole < 100 else 0.5)
    embedding = cost.nodes["embed_tokens"].parameters  # of which some authors count none
    assert count_active(cost) - embedding - 0.06e9 < used * 1e9 < count_active(cost) + 0.06e9


def test_the_guide_lists_every_published_config() -> None:
    assert {*MODELS} == {*ROUNDED} == {path.stem for path in Path("specs/zoo/published").glob("*.json")}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize("name", MODELS)
def test_the_class_of_transformers_has_as_many(name: str) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    record = json.loads(Path(f"specs/zoo/published/{name}.json").read_text())
    with torch.device("meta"):
        theirs = AutoModelForCausalLM.from_config(AutoConfig.for_model(**record))
    assert f"{sum(each.numel() for each in theirs.parameters()):,}" == MODELS[name][2]
