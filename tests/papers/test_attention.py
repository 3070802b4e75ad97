"""Papers that change attention: gradients, padding, choices, bundles, and some steps of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.passes import list_attention
from tests.papers.papers_of_attention import PAPERS
from tests.papers.test_papers import HOME, built, random_value
from tests.papers.training import train

each_paper = pytest.mark.parametrize("paper", PAPERS, ids=lambda each: each.__name__)
ACTIVE = {
    "gpt_oss": ("layer.0.expert", 4),
    "mixture_of_attention_heads": ("query", 2),
    "switch_head": ("head.0.mixture.expert", 2),
}  # a pool, and how many of its modules a token runs
LOWERINGS = {
    "attention_sinks": ["windows", "windows"],
    "gpt_oss": ["windows", "dense"],
    "graph_attention": ["dense", "dense"],
    "linear_biases": ["fused", "fused"],
    "mixture_of_attention_heads": ["fused"],
    "soft_caps": ["windows", "dense"],
    "switch_head": ["fused"],
}


def random_batch(model: Model, length: int = 9) -> dict[str, Tensor]:
    """Three examples of some lengths, with padding that must not be read."""
    torch.manual_seed(length)
    found, lengths = dict[str, Tensor](), torch.tensor([length, 2, length - 1])
    for name, type_ in {**model.graph.input_types, **model.graph.target_types}.items():
        if type_.dtype == "length":
            found[name] = lengths
            continue
        found[name] = random_value(type_, 3, length)
        if type_.padded and type_.dtype == "float":
            found[name][torch.arange(length) >= lengths[:, None]] = torch.nan
    return found


@pytest.mark.some(3)
@each_paper
def test_weights_get_the_gradients_of_the_equations_and_padding_is_not_read(paper: Any) -> None:
    model, _ = built(paper.__name__)
    weights, batch = dict(model.named_parameters()), random_batch(model)
    (x,) = (batch[name] for name, type_ in model.graph.input_types.items() if type_.dtype != "length")
    lengths = batch["time_length"].tolist() if "time_length" in batch else [len(each) for each in x]
    ((name, y),) = model.train().compute(batch, losses=False).outputs.items()
    found = [each[:length] for each, length in zip(y, lengths, strict=True)]
    expected = [paper(weights, each[:length])[name] for each, length in zip(x, lengths, strict=True)]
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    ours, theirs = (
        torch.autograd.grad(sum(each.sin().sum() for each in values), [*weights.values()])  # type: ignore[arg-type]
        for values in (found, expected)
    )
    for key, one, other in zip(weights, ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10, msg=lambda text, key=key: f"{key}: {text}")


@each_paper
def test_attention_is_lowered_as_well_as_the_mechanism_allows(paper: Any) -> None:
    choices = list_attention(modgraph.load(HOME / f"{paper.__name__}.mod").ir).values()
    assert [each.lowering for each in choices] == LOWERINGS[paper.__name__], [each.reason for each in choices]


@pytest.mark.parametrize("name", ACTIVE)
def test_modules_run_only_on_their_choice(name: str) -> None:
    model, _ = built(name)
    path, k = ACTIVE[name]
    batch, rows = random_batch(model), list[int]()
    batch.pop("time_length")
    modules = [module for at, module in model.named_modules() if at.startswith(f"{path}.") and at.endswith("linear")]
    for module in modules:
        module.register_forward_pre_hook(lambda module, given: rows.append(given[0].shape[:-1].numel()))
    inputs = {each: value.nan_to_num() for each, value in batch.items() if each in model.graph.input_types}
    model.compute(inputs, losses=False)
    products = 2 if name == "gpt_oss" else 1
    assert sum(rows) == products * k * 3 * 9, f"{path} computes other messages than the chosen ones"


@pytest.mark.some(3)
@each_paper
def test_some_steps_learn(paper: Any) -> None:
    model = modgraph.load(HOME / f"{paper.__name__}.mod").build(seed=0).train()
    batch = {key: each.float() if each.is_floating_point() else each for key, each in random_batch(model).items()}
    losses = train(model, batch, torch.optim.Adam(model.parameters(), lr=0.01), steps=15)
    assert losses[-1] < 0.95 * losses[0], f"nothing is learnt: {losses[0]} to {losses[-1]}"


@pytest.mark.slow
@each_paper
def test_its_bundle_agrees_at_lengths_that_nobody_traced(paper: Any, tmp_path: Path) -> None:
    model = modgraph.load(HOME / f"{paper.__name__}.mod").build(seed=0).eval()
    modgraph.export(model, tmp_path / "model.onnx")
    bundle = Bundle(tmp_path / "model.onnx")
    for length in (3, 5, 41) if model.graph.input_types.keys() & {"time_length"} else (6,):
        batch = {key: each for key, each in random_batch(model, length).items() if key in model.graph.input_types}
        batch = {key: each.float() if each.is_floating_point() else each for key, each in batch.items()}
        with torch.no_grad():
            expected = model.compute(batch, losses=False).outputs
        found = bundle.run({key: each.numpy() for key, each in batch.items()})
        for key, each in expected.items():
            there = torch.arange(length) < batch["time_length"][:, None] if "time_length" in batch else ...
            torch.testing.assert_close(torch.from_numpy(found[key])[there], each[there], rtol=1e-4, atol=1e-5)
