"""Routers that choose k modules, and the truncated kernel: equations in numpy, forms against each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from torch import Tensor, nn

import modgraph
import modgraph.nn.chance
from modgraph.nn import (
    ChoiceDense,
    ChoiceGathered,
    ChoiceGrouped,
    ChoiceMasked,
    ChoicePerModule,
    Importance,
    Linear,
    Pool,
    TokenChoice,
)
from modgraph.nn.choice import mark_top_k
from modgraph.nn.message_passing import ChoiceMessagePassing, EveryEdgeMessagePassing
from modgraph.nn.padding import valid
from tests.nn.by_router import DIM, given_by, messages_of, model_by, randomised, weights_of
from tests.ordinary_run import some_examples


def linear_pool(size: int, width_in: int, width: int, seed: int) -> Pool:
    pool = Pool([Linear(width_in, width) for _ in range(size)]).double()
    randomised(pool, seed)
    return pool


def unlike_pool(size: int, seed: int) -> Pool:
    """Modules of different kinds, from 3 numbers to 2."""
    kinds = (lambda: nn.Linear(3, 2), lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)))
    pool = Pool([kinds[j % 2]() for j in range(size)]).double()
    randomised(pool, seed)
    return pool


@given(
    scores=st.lists(st.lists(st.integers(-2, 2), min_size=4, max_size=4), min_size=1, max_size=5), k=st.integers(1, 4)
)
def test_of_equal_scores_the_first_wins(scores: list[list[int]], k: int) -> None:
    marks = mark_top_k(torch.tensor(scores, dtype=torch.float64), k).numpy()
    expected = np.zeros_like(marks)
    np.put_along_axis(expected, np.argsort(-np.array(scores), axis=1, kind="stable")[:, :k], 1.0, axis=1)
    np.testing.assert_array_equal(marks, expected)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("softmax", ["after_top_k", "before_top_k"])
@pytest.mark.parametrize("training", [True, False])
def test_noisy_top_k_is_that_of_the_equations(
    k: int, softmax: str, training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_by(f'noisy_top_k({k}, softmax="{softmax}")', 4).train(training)
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randn(2, 5, DIM, dtype=torch.float64, generator=generator)
    draws = torch.randn(2, 5, 4, dtype=torch.float64, generator=generator)
    monkeypatch.setattr(modgraph.nn.chance, "standard_normal", lambda like: draws)
    result, records = given_by(model, tokens).numpy()
    messages = messages_of(model, tokens).detach().numpy()
    Wg, Wn = (weights_of(model)[name] for name in ("weight", "noise_weight"))
    for at in np.ndindex(2, 5):
        x = tokens[at].numpy()
        deviation = np.log1p(np.exp(Wn @ x)) + 0.01
        H = Wg @ x + training * deviation * draws[at].numpy()
        picks = np.argsort(-H, kind="stable")[:k]
        e = np.exp(H - H.max())
        gate = np.zeros(4)
        gate[picks] = e[picks] / (e.sum() if softmax == "before_top_k" else e[picks].sum())
        load = [float(j in picks) for j in range(4)]
        if training:
            others = [np.sort(np.delete(H, j))[::-1] for j in range(4)]
            load = [1.0 if k == 4 else norm.cdf(((Wg @ x)[j] - others[j][k - 1]) / deviation[j]) for j in range(4)]
        np.testing.assert_allclose(records["scores"][at], Wg @ x, atol=1e-12)
        np.testing.assert_allclose(records["gates"][at], gate, atol=1e-12)
        np.testing.assert_array_equal(np.flatnonzero(records["selected"][at]), np.sort(picks))
        np.testing.assert_allclose(records["load"][at], load, atol=1e-10)
        np.testing.assert_allclose(result[at], gate @ messages[at], atol=1e-10)


def test_noise_is_added_only_in_training() -> None:
    def load(router: str, training: bool) -> list[float]:
        torch.manual_seed(0)
        x = torch.zeros(1, 200, DIM, dtype=torch.float64)
        found: Tensor = given_by(model_by(router, 4).train(training), x).records["selected"]
        return list(found.sum((0, 1)).tolist())

    assert all(load("noisy_top_k", True))
    assert load("noisy_top_k", False) == load("noisy_top_k(noise=false)", True) == [200, 0, 0, 0]


@some_examples(100)
@given(
    N=st.integers(1, 7),
    M=st.integers(1, 5),
    k=st.integers(1, 5),
    seed=st.integers(0, 2**16),
    kept=st.floats(0, 1),
    unlike=st.booleans(),
    straight=st.booleans(),
    lengths=st.one_of(st.none(), st.lists(st.integers(0, 7), min_size=2, max_size=2)),
)
def test_lowerings_agree_in_values_and_gradients(
    N: int, M: int, k: int, seed: int, kept: float, unlike: bool, straight: bool, lengths: list[int] | None
) -> None:
    """Of a choice of k modules at most, among them ties, modules that nobody chooses, and what found no place."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(2, N, 3, dtype=torch.float64, generator=generator).requires_grad_()
    scores = torch.randint(0, 3, (2, N, M), generator=generator).double()
    choice = mark_top_k(scores, k := min(k, M)) * (torch.rand(2, N, M, generator=generator) < kept)
    gates = torch.randn(2, N, M, dtype=torch.float64, generator=generator).requires_grad_()
    mask = None if lengths is None else valid(tokens, -2, torch.tensor(lengths))
    lowerings: list[nn.Module] = [
        ChoiceMessagePassing(),
        ChoicePerModule(),
        ChoiceGrouped(),
        ChoiceMasked(),
        ChoiceGathered(),
    ]
    lowerings = [EveryEdgeMessagePassing(), ChoiceDense()] if straight else lowerings[: 4 if unlike else 5]
    pool, found = unlike_pool(M, seed) if unlike else linear_pool(M, 3, 2, seed), []
    for lowering in lowerings:
        results = lowering(tokens, pool, TokenChoice(k, straight), gates, scores, choice.double(), mask=mask)
        total = results[0].square().sum() + (results[1] * torch.arange(M)).sum()
        given = torch.autograd.grad(total, [tokens, gates, *pool.parameters()], materialize_grads=True)
        found.append([*results, *given])
    for reference, *others in zip(*found, strict=True):
        for ours in others:
            torch.testing.assert_close(ours, reference, atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    "modules",
    [
        "linear(4, bias=false)",
        "linear(6) -> gelu -> scale -> linear(4)",
        "modulated_linear(4, code=3)",
        "modulated_mlp([5, 4]) -> tanh",
        "flatten -> linear(12)",
    ],
)
def test_modules_taken_by_index_give_what_each_gives_by_itself(modules: str) -> None:
    shape = "5, 3, 4" if "flatten" in modules else "5, 4"
    text = f"model m() {{ input x: float[{shape}] pool p[4] = {modules} y = x -> p output y }}"
    pool = randomised(modgraph.loads(text).build().double(), 0).get_submodule("p")
    assert isinstance(pool, Pool)
    tokens = torch.randn(9, *([3, 4] if "flatten" in modules else [4]), dtype=torch.float64)
    module_E = torch.tensor([3, 0, 1, 2, 2, 0, 3, 1, 1])
    picks = pool.stack_weights()(module_E, tokens)
    separate = [pool.expert(int(j))(tokens[at : at + 1]) for at, j in enumerate(module_E)]
    torch.testing.assert_close(picks, torch.cat(separate), atol=1e-10, rtol=0)


@pytest.mark.some(12)
@pytest.mark.parametrize("truncation", [2.0, 0.8])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("V", [2, 5])
@pytest.mark.parametrize("lowering", ["factorised", "dense", "message_passing"])
def test_the_kernel_is_that_of_the_equation(truncation: float, bias: bool, V: int, lowering: str) -> None:
    model = model_by(f"truncated_kernel({truncation}, bias={str(bias).lower()})", 4, lowering=lowering, width=V)
    model.get_parameter("r.bandwidth").data.fill_(0.6)
    tokens = torch.randn(3, 6, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    result, records = given_by(model, tokens, torch.tensor([6, 4, 0])).numpy()
    messages, weights = messages_of(model, tokens).detach().numpy(), weights_of(model)
    affinities = np.zeros((3, 6, 4))
    total = np.zeros((3, 4, V))
    for example, N in enumerate((6, 4, 0)):
        for i, j in np.ndindex(N, 4):
            t = weights["weight"] @ tokens[example, i].numpy() + weights.get("bias", 0)
            signature = weights["signature"][j]
            cosine = t @ signature / np.linalg.norm(t) / np.linalg.norm(signature)
            affinities[example, i, j] = np.exp(-(1 - cosine) / 0.6) * (1 - cosine <= truncation)
            total[example, j] += affinities[example, i, j] * messages[example, i, j] / N
    assert (affinities[:1] == 0).any() == (truncation < 2)
    np.testing.assert_allclose(records["gates"], affinities, atol=1e-10)
    np.testing.assert_allclose(result, total, atol=1e-10)


def test_balance_losses_are_squared_coefficients_of_variation() -> None:
    load = torch.rand(3, 5, 4, dtype=torch.float64)
    total = load.numpy().sum((0, 1))
    expected = total.var(ddof=1) / total.mean() ** 2
    np.testing.assert_allclose(Importance("batch")(load).item(), expected)
    per_example = load.numpy().sum(1)
    expected_each = per_example.var(1, ddof=1) / per_example.mean(1) ** 2
    np.testing.assert_allclose(Importance("example")(load).numpy(), expected_each)
