"""Metrics against their equations in numpy: perplexity, squared error, and what controllers do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modgraph
from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.declare import Role
from modgraph.ir import Result
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.controllers import Controller, mean_entropy, sum_decisions
from modgraph.metrics.metrics import Metrics, evaluate, measure
from modgraph.metrics.target_metrics import SquaredError
from modgraph.routers import Router
from modgraph.store.records import json_text
from tests.examples import GRU, ROUTER_EXAMPLES

RNG = np.random.default_rng(0)
LENGTHS = np.array([7, 1, 4, 0, 6] * 70)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def entropy(p: Any) -> Any:
    return -(p * np.log(np.where(p > 0, p, 1))).sum(-1)


def gru(hidden: int = 6, modules: int = 3, **options: Any) -> Model:
    model = modgraph.loads(GRU, hidden=hidden, modules=modules, **options).build(seed=1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(RNG.normal(0, 0.7, weight.shape)) if "controller" in name else weight)
    return model


def sentences() -> Arrays:
    """350 of up to 7 words: more than one batch of an evaluation."""
    words, following = RNG.integers(0, 20, (2, len(LENGTHS), 7))
    return Arrays({"words": words, "next": following, "time_length": LENGTHS})


def unpadded(array: torch.Tensor) -> Any:
    """The rows of what is no padding, [S, ...]."""
    found = array.detach().double().numpy()
    return np.concatenate([row[:length] for row, length in zip(found, LENGTHS, strict=True)])


def test_perplexity_weighs_every_word_equally_and_leaves_padding_out() -> None:
    model, arrays = gru().eval(), sentences()
    logits = unpadded(model(torch.from_numpy(arrays.values["words"]), torch.from_numpy(LENGTHS)))
    label = np.concatenate([row[:n] for row, n in zip(arrays.values["next"], LENGTHS, strict=True)])
    expected = np.exp(-np.log(softmax(logits)[np.arange(len(label)), label]).mean())
    found = measure(model, arrays)
    assert found["perplexity"] == pytest.approx(expected, rel=1e-6)
    assert found["accuracy"] == pytest.approx((logits.argmax(-1) == label).mean())
    arrays.values["next"][np.arange(7) >= LENGTHS[:, None]] = 3
    arrays.values["words"][np.arange(7) >= LENGTHS[:, None]] = 11
    assert measure(model, arrays) == pytest.approx(found)


def test_perplexity_is_of_labels_that_count() -> None:
    text = GRU.replace("cross_entropy(logits, next)", "cross_entropy(logits, next, ignore=4)")
    model, arrays = modgraph.loads(text).build().eval(), sentences()
    logits = unpadded(model(torch.from_numpy(arrays.values["words"]), torch.from_numpy(LENGTHS)))
    label = np.concatenate([row[:n] for row, n in zip(arrays.values["next"], LENGTHS, strict=True)])
    log_p = np.log(softmax(logits)[np.arange(len(label)), label])[label != 4]
    assert measure(model, arrays)["perplexity"] == pytest.approx(np.exp(-log_p.mean()), rel=1e-6)


def test_a_perplexity_beyond_all_numbers_is_infinite_and_in_json_null() -> None:
    model, arrays = gru(), sentences()
    with torch.no_grad():
        model.get_parameter("logits.linear.bias").copy_(torch.arange(20) * 1e4)
    found = measure(model, arrays)
    assert found["perplexity"] == np.inf
    assert json.loads(json_text(found), parse_constant=pytest.fail)["perplexity"] is None


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_of_a_split_come_to_the_whole(parts: int) -> None:
    model, arrays = gru(k=2), sentences()
    found = Accumulators.merge([evaluate(model, arrays, part, parts) for part in range(parts)])
    assert Metrics(model.graph).values(found) == pytest.approx(measure(model, arrays))


@pytest.mark.parametrize("k", [1, 2])
def test_the_controller_of_a_scan_by_hand(k: int) -> None:
    model, arrays = gru(k=k).eval(), sentences()
    batch = {name: torch.from_numpy(array) for name, array in arrays.values.items()}
    routing = model.compute(batch, losses=False, routing=True).routing
    scores, choice = (
        unpadded(next(v for n, v in routing.items() if n.endswith(r)))[:, 0] for r in ("scores", "selected")
    )
    p = softmax(scores)
    found = measure(model, arrays)
    assert found["H_a"] == pytest.approx(entropy(p).mean(), rel=1e-6)
    assert found["H_b"] == pytest.approx(entropy(p.mean(0)), rel=1e-6)
    assert [found[f"use.{j}"] for j in range(3)] == pytest.approx(choice.mean(0) / k)
    assert 0 < found["H_a"] < found["H_b"] < np.log(3)
    assert {"H_a", "H_b", "use.2", "perplexity", "accuracy", "total_loss"} < set(Metrics(model.graph).names)
    assert list(found) == Metrics(model.graph).names


@pytest.mark.parametrize("slots", [1, 3])
def test_slots_have_distributions_of_their_own(slots: int) -> None:
    """A controller of several slots, as [B, N, K, M]: what is measured, over batches with padding, by hand."""
    logits = RNG.normal(0, 2, (50, 4, slots, 5))
    picks = np.eye(5)[logits.argmax(-1)]
    padding = RNG.random((50, 4)) < 0.3
    logits[padding], picks[padding] = 0, 0
    log_p = np.where(padding[..., None, None], 0, np.log(softmax(logits)))
    result = Result("route", 1)
    controller, accumulators = Controller("route", "", (result, result), slotted=True, modules=5), Accumulators()
    for start in range(0, 50, 20):
        here = slice(start, start + 20)
        controller.add(accumulators, {}, [torch.from_numpy(log_p[here]), torch.from_numpy(picks[here])])
    found = controller.values(accumulators)
    p = softmax(logits)[~padding]
    assert found["H_a"] == pytest.approx(entropy(p).mean())
    assert found["H_b"] == pytest.approx(np.mean([entropy(p[:, k].mean(0)) for k in range(slots)]))
    assert [found[f"use.{j}"] for j in range(5)] == pytest.approx(picks.sum((0, 1, 2)) / picks.sum())


def test_sure_and_blind_controllers_are_distinguished() -> None:
    """One that decides by the example, one that always decides alike, one that never decides."""
    sure = torch.tensor([[[0.0, -torch.inf]], [[-torch.inf, 0.0]]])
    blind = torch.tensor([[[0.0, -torch.inf]]] * 2)
    open_ = torch.zeros(2, 1, 2)
    ones = torch.tensor([[[1.0, 0.0]]] * 2)
    measured = [sum_decisions(scores, ones) for scores in (sure, blind, open_)]
    assert [float(entropy / decisions) for decisions, entropy, _, _ in measured] == pytest.approx([0, 0, np.log(2)])
    spread = [mean_entropy(probability / decisions) for decisions, _, probability, _ in measured]
    assert spread == pytest.approx([np.log(2), 0, np.log(2)])


def test_squared_error_is_over_all_that_examples_hold() -> None:
    text = "model m() { input x: float[3] target y: float[2, 3] target z: float[4] "
    text += "u = x -> linear(6) -> linear(6) v = x -> linear(4) pool p[2] = linear(3) w = x -> p output w "
    text += "loss mse(w, y) loss mse(v, z) }"
    model = modgraph.loads(text).build()
    data = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in _shapes().items()}
    found = measure(model, Arrays(data))
    results = model.results({"x": torch.from_numpy(data["x"])}, tuple(m.result for m in Metrics(model.graph).all))
    for metric, value in zip(Metrics(model.graph).all, results, strict=True):
        assert isinstance(metric, SquaredError)
        expected = np.mean((value.detach().numpy() - data[metric.target]) ** 2)
        assert found[f"{metric.target}.mse"] == pytest.approx(expected, rel=1e-5)


def _shapes() -> dict[str, tuple[int, ...]]:
    return {"x": (300, 3), "y": (300, 2, 3), "z": (300, 4)}


@pytest.mark.parametrize("name", ROUTER_EXAMPLES)
def test_a_router_with_a_controller_records_what_is_measured(name: str) -> None:
    router = Router.registry[name]
    distribution = {Role.LOGITS, Role.LOG_PROBABILITIES} & {record.role for record in router.records}
    metrics = Metrics(modgraph.loads(ROUTER_EXAMPLES[name]).ir)
    assert ("H_a" in metrics.names) == bool(distribution)


def test_of_several_controllers_each_has_its_name(tmp_path: Path) -> None:
    names = Metrics(modgraph.load("specs/gmoe_digits.mod").ir).names
    assert {"blocks.1.expert.H_a", "blocks.3.expert.use.5"} <= set(names)
    assert "perplexity" not in names


# ------------------------------------------------------------ what losses are called, and which way is better


def names_of(losses: str) -> list[str]:
    text = f"""
    model m() {{
      input x: float[5, 4]
      target label: class[3]
      pool   p[3] = linear(4)
      router r = noisy_top_k(2)
      h = x -> p by r -> mean
      y = h -> linear(3)
      half = 0.5 * entropy(y)
      output y
      {losses}
    }}"""
    return list(modgraph.loads(text).ir.losses)


LOSSES = {
    "loss cross_entropy(y, label)": ["loss.cross_entropy"],
    "loss (y, label) -> cross_entropy": ["loss.cross_entropy"],
    "loss 0.1 * importance(r) loss load(r) / 2": ["loss.importance", "loss.load"],
    "loss 2 * (importance(r) + load(r) + importance(r))": ["loss.importance_load"],
    "loss entropy(y) loss entropy(y)": ["loss.entropy", "loss.entropy2"],
    "loss half loss y -> mean(axis=-1)": ["loss.half", "loss.mean"],
    "loss accuracy = entropy(y)": ["loss.accuracy"],
    "loss importance = importance(r) loss importance(r)": ["loss.importance", "loss.importance2"],
}


@pytest.mark.parametrize("losses", LOSSES)
def test_a_loss_without_a_name_is_called_after_its_op(losses: str) -> None:
    assert names_of(losses) == LOSSES[losses]


def test_a_loss_named_accuracy_is_better_when_it_shrinks() -> None:
    spec = """
    model m() {
      input x: float[4]
      target label: class[3]
      target number: float[3]
      y = x -> linear(3)
      output y
      loss accuracy = cross_entropy(y, label)
      loss mse(y, number)
    }"""
    metrics = Metrics(modgraph.loads(spec).ir, "domain", ["a"])
    growing = {name for name, larger in metrics.larger_is_better.items() if larger}
    assert growing == {"accuracy", "domain.a.accuracy", "domain.accuracy"}
    assert {"loss.accuracy", "loss.mse", "total_loss", "mse"} <= metrics.larger_is_better.keys() - growing
