"""Cosine and linear top-k routers against GMoE's equations in numpy: gates, load, importance, capacity, ties."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import modgraph
import modgraph.nn.chance
from modgraph.backends.torch import Model
from modgraph.ir import OpNode
from modgraph.nn import Importance
from modgraph.nn.choice import limit_capacity, mark_top_k
from modgraph.passes import INFERENCE, apply_passes
from tests.nn.by_router import DIM, Array, given_by, messages_of, model_by, weights_of
from tests.nn.gmoe_in_numpy import Decision, cosine_logits, decide, dropped, squared_cv
from tests.ordinary_run import some_examples

RECORDS = {"gates": "gates", "selected": "kept", "load": "load", "probabilities": "probabilities"}


def model_of(kind: str, experts: int, **given: object) -> Model:
    words = {name: f'"{value}"' if isinstance(value, str) else value for name, value in given.items()}
    words |= {"width": 4} if kind == "cosine" else {}
    return model_by(f"{kind}({', '.join(f'{name}={value}' for name, value in words.items())})", experts)


def logits_of(model: Model, x: Array) -> Array:
    weights = weights_of(model)
    if "keys" not in weights:
        return np.asarray(x @ weights["weight"].T)
    return cosine_logits(x, weights["weight"], weights["bias"], weights["keys"], float(weights["scale"]))


def some_tokens(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def fixed_noise(monkeypatch: pytest.MonkeyPatch, draws: Tensor) -> None:
    monkeypatch.setattr(modgraph.nn.chance, "standard_normal", lambda like: draws.reshape(like.shape))


def compare(model: Model, tokens: Tensor, expected: Decision) -> None:
    value, records = (found := given_by(model, tokens)).numpy()
    for name, of in RECORDS.items():
        ours = records[name].reshape(-1, records[name].shape[-1])
        np.testing.assert_allclose(ours, getattr(expected, of), atol=1e-10, err_msg=name)
    messages = messages_of(model, tokens.flatten(0, -2)).detach().numpy()
    total = (expected.gates[:, :, None] * messages).sum(1)
    np.testing.assert_allclose(value.reshape(total.shape), total, atol=1e-10)
    for name in ("probabilities", "load"):
        cv = squared_cv(getattr(expected, name).sum(0))
        np.testing.assert_allclose(Importance("batch")(found.records[name]).item(), cv, atol=1e-10)


@pytest.mark.some(24)
@pytest.mark.parametrize("kind", ["cosine", "linear"])
@pytest.mark.parametrize("estimator", ["paper", "kth_of_others", "code"])
@pytest.mark.parametrize(("k", "experts"), [(1, 4), (2, 4), (4, 4), (1, 1)])
@pytest.mark.parametrize(("capacity", "priority"), [(0.0, "score"), (1.0, "score"), (1.0, "first_choice")])
def test_routing_is_that_of_the_equations(
    kind: str, estimator: str, k: int, experts: int, capacity: float, priority: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sigma = 1 / experts
    model = model_of(kind, experts, k=k, noise=sigma, load=estimator, capacity=capacity, priority=priority)
    tokens = some_tokens(2, 7, seed=2)
    draws = torch.randn(14, experts, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    fixed_noise(monkeypatch, draws)
    logits = logits_of(model, tokens.flatten(0, 1).numpy())
    compare(model.train(), tokens, decide(logits, sigma * draws.numpy(), sigma, k, estimator, capacity, priority))
    compare(model.eval(), tokens, decide(logits, 0 * draws.numpy(), sigma, k, estimator))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("capacity", [0.0, 0.5, 1.0])
def test_ties_go_to_the_lower_expert_and_the_earlier_token(
    k: int, capacity: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of("linear", 3, k=k, noise=0.5, capacity=capacity).train()
    monkeypatch.setattr(modgraph.nn.chance, "standard_normal", torch.zeros_like)
    model.get_parameter("r.weight").data.copy_(torch.tensor([[0, 1, 0], [0, 1, 0], [1, 0, 0]]))
    tokens = torch.tensor([[0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 1, 0], [0, 0, 0]], dtype=torch.float64)
    logits = logits_of(model, tokens.numpy())
    compare(model, tokens.unsqueeze(0), decide(logits, np.zeros_like(logits), 0.5, k, "paper", capacity))


@some_examples(100)
@given(
    scores=st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=8),
    padding=st.integers(0, 3),
    k=st.integers(1, 3),
    capacity=st.integers(0, 5),
    priority=st.sampled_from(["score", "first_choice"]),
)
def test_beyond_the_capacity_the_tokens_are_dropped_that_the_equations_drop(
    scores: list[list[int]], padding: int, k: int, capacity: int, priority: str
) -> None:
    unpadded = torch.tensor(scores, dtype=torch.float64)
    values = torch.cat((unpadded, 9 * torch.ones(padding, 3)))
    picks = mark_top_k(values, k).bool()
    picks[len(scores) :] = False
    expected = picks.clone()
    for token, expert in dropped(list(unpadded.numpy()), k, capacity, priority):
        expected[token, expert] = False
    assert torch.equal(limit_capacity(values, picks, capacity, priority), expected)


def test_the_authors_give_a_second_choice_no_place_that_a_first_choice_wants() -> None:
    scores = torch.tensor([[0.6, 0.4, 0.0], [0.5, 0.45, 0.05], [0.3, 0.34, 0.36]])
    picks = mark_top_k(scores, 2).bool()
    assert limit_capacity(scores, picks, 1, "first_choice").tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert limit_capacity(scores, picks, 1, "score").tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_padding_takes_no_place() -> None:
    model, tokens = model_of("linear", 2, capacity=1.0).train(), some_tokens(2, 6)
    padded = given_by(model, tokens, torch.tensor([6, 2]))
    single = given_by(model, torch.cat((tokens[0], tokens[1, :2])).unsqueeze(0))
    assert (single.records["selected"].sum(-1) == 0).any()
    for name, found in {"y": padded.value, **padded.records}.items():
        expected = single.records.get(name, single.value)
        torch.testing.assert_close(torch.cat((found[0], found[1, :2])).unsqueeze(0), expected)
        assert not found[1, 2:].any(), name


def test_without_noise_the_load_is_the_number_of_tokens() -> None:
    records = given_by(model_of("cosine", 3, k=2).train(), some_tokens(1, 9)).records
    assert torch.equal(records["load"], records["selected"])


def test_the_scale_begins_at_two_and_ends_at_a_hundred() -> None:
    text = "model m() { input x: float[5, 6] pool p[3] = scale router r = cosine y = x -> p by r output y }"
    assert math.isclose(modgraph.loads(text).build().get_parameter("r.scale").exp().item(), 2, rel_tol=1e-6)
    model = model_of("cosine", 3)
    model.get_parameter("r.scale").data.fill_(9)
    assert 50 < given_by(model, some_tokens(1, 50)).records["scores"].abs().max() <= 100


TRAINED = """model m() {
  input x: float[20, 6] target label: class[4]
  pool p[4] = linear(4) router r = ROUTER y = x -> p by r
  logits = y -> mean output logits
  loss cross_entropy(logits, label)
  loss i = importance(r)
  loss l = load(r)
}"""


@pytest.mark.parametrize("router", ["cosine(width=5, noise=0.25)", "linear(k=2, noise=0.25, capacity=1.5)"])
def test_losses_reach_every_weight_of_the_router(router: str) -> None:
    model = modgraph.loads(TRAINED.replace("ROUTER", router)).build()
    batch = {"x": torch.randn(3, 20, 6), "label": torch.tensor([0, 1, 2])}
    computed = model.compute(batch, routing=True)
    expected = Importance("batch")(computed.routing["p.probabilities"])
    torch.testing.assert_close(computed.losses["loss.i"], expected)
    for name in ("loss.i", "loss.l"):
        weights = [parameter for key, parameter in model.named_parameters() if key.startswith("r.")]
        gradients = torch.autograd.grad(computed.losses[name], weights, retain_graph=True)
        assert all(gradient.abs().sum() > 0 for gradient in gradients)


IN_TRAINING = {"normal_noise", "within_capacity", "training_or_inference"}


@pytest.mark.parametrize(
    "router", ["cosine(noise=1.0, capacity=0.5)", "linear(noise=1.0, capacity=0.5)", "noisy_top_k"]
)
def test_inference_drops_noise_and_capacity(router: str) -> None:
    graph = modgraph.loads(TRAINED.replace("ROUTER", router)).ir
    before, after = (
        {node.op.name for node in each.nodes_of(OpNode)} for each in (graph, apply_passes(graph, INFERENCE))
    )
    assert len(before & IN_TRAINING) == 2 and not after & IN_TRAINING
    assert not any("noise" in each.name for each in apply_passes(graph, INFERENCE).nodes_of(OpNode))
