"""Papers that route, look up and compare by ids: padding, gradients, bundles, and some steps of training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.ir import Result, comparisons
from tests.papers.papers_of_deepseek import deepseek_v3, predict_after
from tests.papers.papers_of_ids import PAPERS, hash_layer, margin_loss, peer, product_keys
from tests.papers.test_papers import HOME, built, random_value
from tests.papers.training import train

NAMES = [paper.__name__ for paper in (*PAPERS, deepseek_v3)]
PADDED = [name for name in NAMES if name != "capsules"]
Batch = dict[str, Tensor]


def random_batch(model: Model, length: int = 7) -> Batch:
    torch.manual_seed(length)
    types = {**model.graph.input_types, **model.graph.target_types}
    found = {name: random_value(type_, 3, length) for name, type_ in types.items() if type_.dtype != "length"}
    lengths = [name for name, type_ in types.items() if type_.dtype == "length"]
    return {**found, **{name: torch.tensor([length, 2, length - 1]) for name in lengths}}


@pytest.mark.parametrize("name", PADDED)
def test_padding_changes_neither_losses_nor_gradients(name: str) -> None:
    model, _ = built(name)
    batch = random_batch(model)
    other = dict(batch)
    for key in ("x", "y", "words", "next", "after"):
        if key in batch:
            there = torch.arange(7) < batch["time_length"][:, None]
            fill = torch.randint_like(batch[key], 12) if not batch[key].is_floating_point() else torch.nan
            there = there if batch[key].dim() == 2 else there[..., None]
            other[key] = torch.where(there, batch[key], fill)
    found = []
    for each in (batch, other):
        model.zero_grad()
        loss = model.train().compute(each, moves=False).loss
        loss.backward()  # type: ignore[no-untyped-call]
        found.append([loss, *(each.grad.to_dense() for each in model.parameters() if each.grad is not None)])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("paper", [hash_layer, peer, product_keys, deepseek_v3], ids=lambda each: each.__name__)
def test_weights_get_the_gradients_of_the_equations(paper: object) -> None:
    model, _ = built(paper.__name__)  # type: ignore[attr-defined]
    weights = {**model.state_dict(), **dict(model.named_parameters())}
    batch = random_batch(model)
    name = "x" if "x" in batch else "words"
    (output,) = model.graph.outputs
    model.compute({name: batch[name]}, losses=False).outputs[output].square().sum().backward()  # type: ignore[no-untyped-call]
    expected = sum(paper(weights, one)[output].square().sum() for one in batch[name])  # type: ignore[operator]
    learnt = {key: each for key, each in weights.items() if each.requires_grad}
    gradients = torch.autograd.grad(expected, [*learnt.values()], allow_unused=True)
    for (key, weight), gradient in zip(learnt.items(), gradients, strict=True):
        if gradient is not None:
            assert weight.grad is not None, f"{key} gets no gradient"
            torch.testing.assert_close(weight.grad.to_dense(), gradient, msg=lambda text, key=key: f"{key}: {text}")


def test_a_margin_loss_is_that_of_the_paper_and_keeps_its_accuracy() -> None:
    model, _ = built("capsules")
    batch = random_batch(model)
    computed = model.compute(batch)
    expected = [margin_loss(*pair) for pair in zip(computed.outputs["length"], batch["label"].tolist(), strict=True)]
    torch.testing.assert_close(computed.losses["loss.margin"], torch.stack(expected).mean())
    found = {(each.target, each.prediction) for each in comparisons(model.graph)}
    assert found == {("label", model.graph.outputs["length"])}, "no accuracy"


def test_a_second_head_predicts_the_word_after_the_next() -> None:
    model, weights = built("deepseek_v3")
    batch = random_batch(model)
    (found,) = model.results(batch, (Result("further.head.linear"),))
    for words, length, logits in zip(batch["words"], batch["time_length"].tolist(), found, strict=True):
        expected = predict_after(weights, words[:length])
        torch.testing.assert_close(logits[: length - 1], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", NAMES)
def test_some_steps_learn(name: str) -> None:
    model = modgraph.load(HOME / f"{name}.mod").build(seed=0).train()
    batch = {key: each.float() if each.is_floating_point() else each for key, each in random_batch(model).items()}
    losses = train(model, batch, torch.optim.SGD(model.parameters(), lr=0.1), steps=20)
    assert losses[-1] < 0.99 * losses[0], f"nothing is learnt: {losses[0]} to {losses[-1]}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_its_bundle_agrees_at_lengths_that_nobody_traced(name: str, tmp_path: Path) -> None:
    model = modgraph.load(HOME / f"{name}.mod").build(seed=0).eval()
    modgraph.export(model, tmp_path / "model.onnx")
    bundle = Bundle(tmp_path / "model.onnx")
    for length in (3, 23):
        batch = {key: each for key, each in random_batch(model, length).items() if key in model.graph.input_types}
        batch = {key: each.float() if each.is_floating_point() else each for key, each in batch.items()}
        with torch.no_grad():
            expected = model.compute(batch, losses=False).outputs
        found = bundle.run({key: each.numpy() for key, each in batch.items()})
        for key, each in expected.items():
            there = torch.arange(length) < batch["time_length"][:, None] if "time_length" in batch else ...
            torch.testing.assert_close(torch.from_numpy(found[key])[there], each[there], rtol=1e-4, atol=1e-5)
