"""Cosine and linear top-k routers against GMoE's equations in numpy: gates, load, importance, capacity, ties."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import modgraph
import modgraph.nn.top_k
from modgraph.ir import RouterNode
from modgraph.nn import CosineTopK, Importance, LinearTopK, SelectedPerModule
from modgraph.nn.capacity import within_capacity
from modgraph.nn.padding import valid
from modgraph.nn.top_k import top_k_mask
from modgraph.passes import INFERENCE, apply_passes
from tests.nn.gmoe_in_numpy import Decision, cosine_logits, decide, dropped, squared_cv
from tests.nn.test_selection import linear_pool, randomised

D, WIDTH = 3, 4


def router_of(kind: str, experts: int, seed: int, **given: object) -> CosineTopK | LinearTopK:
    router: CosineTopK | LinearTopK
    if kind == "cosine":
        router = CosineTopK(D, experts, width=WIDTH, **given).double()  # type: ignore[arg-type]
    else:
        router = LinearTopK(D, experts, **given).double()  # type: ignore[arg-type]
    randomised(router, seed)
    return router


def logits_of(router: CosineTopK | LinearTopK, x: np.ndarray) -> np.ndarray:
    weights = {name: tensor.detach().numpy() for name, tensor in router.named_parameters()}
    if isinstance(router, LinearTopK):
        return x @ weights["weight"].T
    return cosine_logits(x, weights["weight"], weights["bias"], weights["keys"], float(weights["scale"]))


def fixed_noise(monkeypatch: pytest.MonkeyPatch, draws: Tensor) -> None:
    monkeypatch.setattr(modgraph.nn.top_k, "standard_normal", lambda like: draws.reshape(like.shape))


def compare(router: CosineTopK | LinearTopK, tokens: Tensor, expected: Decision) -> None:
    pool = linear_pool(expected.gates.shape[1], D, 2, 1)
    result, gates, _, selected, load, probabilities = SelectedPerModule()(tokens, pool, router)
    flat = {
        name: x.detach().flatten(0, -2).numpy()
        for name, x in (("gates", gates), ("kept", selected), ("load", load), ("probabilities", probabilities))
    }
    for name, found in flat.items():
        np.testing.assert_allclose(found, getattr(expected, name), atol=1e-10, err_msg=name)
    x = tokens.flatten(0, -2)
    messages = np.stack([pool.expert(e)(x).detach().numpy() for e in range(len(pool))], 1)
    total = (expected.gates[:, :, None] * messages).sum(1)
    np.testing.assert_allclose(result.detach().flatten(0, -2).numpy(), total, atol=1e-10)
    for name, found in (("probabilities", probabilities), ("load", load)):
        cv = squared_cv(getattr(expected, name).sum(0))
        np.testing.assert_allclose(Importance("batch")(found).item(), cv, atol=1e-10)


@pytest.mark.parametrize("kind", ["cosine", "linear"])
@pytest.mark.parametrize("form", ["paper", "kth_of_others", "code"])
@pytest.mark.parametrize(("k", "experts"), [(1, 4), (2, 4), (4, 4), (1, 1)])
@pytest.mark.parametrize(("capacity", "priority"), [(0.0, "score"), (1.0, "score"), (1.0, "first_choice")])
def test_routing_is_that_of_the_equations(
    kind: str, form: str, k: int, experts: int, capacity: float, priority: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sigma = 1 / experts
    router = router_of(kind, experts, 0, k=k, noise=sigma, load=form, capacity=capacity, priority=priority)
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randn(2, 7, D, dtype=torch.float64, generator=generator)
    draws = torch.randn(14, experts, dtype=torch.float64, generator=generator)
    fixed_noise(monkeypatch, draws)
    logits = logits_of(router, tokens.flatten(0, 1).numpy())
    compare(router.train(), tokens, decide(logits, sigma * draws.numpy(), sigma, k, form, capacity, priority))
    compare(router.eval(), tokens, decide(logits, 0 * draws.numpy(), sigma, k, form))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("capacity", [0.0, 0.5, 1.0])
def test_ties_go_to_the_lower_expert_and_the_earlier_token(k: int, capacity: float) -> None:
    router = LinearTopK(D, 3, k, noise=0.5, capacity=capacity).double().train()
    router.noisy = False
    router.weight.data.copy_(torch.tensor([[0, 1, 0], [0, 1, 0], [1, 0, 0]]))
    tokens = torch.tensor([[0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 1, 0], [0, 0, 0]], dtype=torch.float64)
    logits = logits_of(router, tokens.numpy())
    compare(router, tokens.unsqueeze(0), decide(logits, np.zeros_like(logits), 0.5, k, "paper", capacity))


@settings(max_examples=100, deadline=None)
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
    real = torch.tensor(scores, dtype=torch.float64)
    values = torch.cat((real, 9 * torch.ones(padding, 3)))
    chosen = top_k_mask(values, k)
    chosen[len(scores) :] = False
    expected = chosen.clone()
    for token, expert in dropped(list(real.numpy()), k, capacity, priority):
        expected[token, expert] = False
    assert torch.equal(within_capacity(values, chosen, capacity, priority), expected)


def test_the_authors_give_a_second_choice_no_place_that_a_first_choice_wants() -> None:
    scores = torch.tensor([[0.6, 0.4, 0.0], [0.5, 0.45, 0.05], [0.3, 0.34, 0.36]])
    chosen = top_k_mask(scores, 2)
    assert within_capacity(scores, chosen, 1, "first_choice").tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert within_capacity(scores, chosen, 1, "score").tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_padding_takes_no_place() -> None:
    router = router_of("linear", 2, 0, capacity=1.0).train()
    tokens = torch.randn(2, 6, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    length = torch.tensor([6, 2])
    padded = router(tokens, valid(tokens, -2, length))
    real = torch.cat((tokens[0], tokens[1, :2])).unsqueeze(0)
    for found, alone in zip(padded, router(real), strict=True):
        torch.testing.assert_close(torch.cat((found[0], found[1, :2])).unsqueeze(0), alone)
        assert not found[1, 2:].any()


def test_without_noise_the_load_is_the_number_of_tokens() -> None:
    router = router_of("cosine", 3, 0, k=2).train()
    tokens = torch.randn(1, 9, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    _, _, selected, load, _ = router(tokens)
    assert torch.equal(load, selected)


def test_the_scale_starts_at_two_and_ends_at_a_hundred() -> None:
    model = modgraph.loads(
        "model m() { input x: float[5, 6] pool p[3] = scale router r = cosine y = x -> p by r output y }"
    )
    scale = model.build().get_parameter("r.scale")
    assert math.isclose(scale.exp().item(), 2, rel_tol=1e-6)
    router = router_of("cosine", 3, 0)
    router.scale.data.fill_(9)  # type: ignore[union-attr]
    tokens = torch.randn(1, 50, D, dtype=torch.float64)
    assert router.logits(tokens).abs().max() <= 100


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
    expected = Importance("batch")(computed.routing["y.p.probabilities"])
    torch.testing.assert_close(computed.losses["loss.i"], expected)
    for name in ("loss.i", "loss.l"):
        weights = [parameter for key, parameter in model.named_parameters() if key.startswith("r.")]
        gradients = torch.autograd.grad(computed.losses[name], weights, retain_graph=True)
        assert all(gradient.abs().sum() > 0 for gradient in gradients)


@pytest.mark.parametrize("router", ["cosine(noise=1.0, capacity=0.5)", "linear(noise=1.0, capacity=0.5)"])
def test_inference_drops_noise_and_capacity(router: str) -> None:
    graph = apply_passes(modgraph.loads(TRAINED.replace("ROUTER", router)).ir, INFERENCE)
    (node,) = graph.of_kind(RouterNode)
    assert str(node.router) == router.partition("(")[0]
