"""Agreement routing against the equations in numpy, and every form of it against message passing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from modgraph.nn import (
    Agreement,
    AgreementDense,
    AgreementFactorised,
    ModulatedLinear,
    Pool,
    Tokens,
)
from modgraph.nn.message_passing import AgreementMessagePassing
from modgraph.nn.padding import valid

Array = NDArray[np.float64]
FORMS = (AgreementMessagePassing(), AgreementDense(), AgreementFactorised())


def numpy_agreement(
    messages_NMV: Array, keys_NV: Array, iterations: int, update: str = "sum", residual: bool = False
) -> tuple[Array, Array, Array]:
    """Algorithm 1 for one example, loops and all: v, c and α from u_ij and t_i."""
    N, M, _ = messages_NMV.shape
    first = np.array([sum(messages_NMV[i, j] for i in range(N)) / N for j in range(M)])
    values, alpha, c = first, np.zeros((N, M)), np.full((N, M), 1 / M)
    for _ in range(iterations):
        for i in range(N):
            for j in range(M):
                norms = np.linalg.norm(keys_NV[i]) * np.linalg.norm(values[j])
                alpha[i, j] += keys_NV[i] @ values[j] / norms
            shifted = np.exp(alpha[i] - alpha[i].max())
            c[i] = shifted / shifted.sum()
        values = np.array([sum(c[i, j] * messages_NMV[i, j] for i in range(N)) for j in range(M)])
        if update == "normalised":
            values = values / (c.sum(0) + 1e-8)[:, None]
    if residual:
        values = np.maximum(0, first + values) if iterations else np.maximum(0, first)
    return values, c, alpha


def numpy_modulated(tokens_ND: Array, shared: nn.Module, codes_MC: Array) -> Array:
    """u_ij = W (s_i ⊙ LayerNorm(Wc c_j)) + b."""
    W, b, Wc = (shared.get_parameter(name).detach().numpy() for name in ("weight", "bias", "code_weight"))
    projected = codes_MC @ Wc.T
    centred = projected - projected.mean(1, keepdims=True)
    gain_MD = centred / np.sqrt(centred.var(1, keepdims=True) + 1e-5)
    return np.asarray((tokens_ND[:, None, :] * gain_MD[None]) @ W.T + b)


def modulated_pool(size: int, width_in: int, width: int) -> Pool:
    shared = ModulatedLinear.Shared(width_in, width, width)
    return Pool([ModulatedLinear.Own(shared, width) for _ in range(size)], shared).double()


def randomised(module: nn.Module, seed: int) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.data.normal_(0, 0.5, generator=generator)
    return module


@pytest.mark.parametrize("iterations", [0, 1, 2, 4])
@pytest.mark.parametrize("sizes", [(6, 2, 5, 7), (3, 3, 4, 4), (1, 4, 3, 2), (5, 1, 4, 3)])
@pytest.mark.parametrize("option", [{}, {"update": "normalised", "residual": True, "bias": True}])
def test_every_form_computes_algorithm_1(
    iterations: int, sizes: tuple[int, int, int, int], option: dict[str, object]
) -> None:
    N, M, D, V = sizes
    pool = modulated_pool(M, D, V)
    router = Agreement(D, V, iterations, **option).double()  # type: ignore[arg-type]
    randomised(pool, 1), randomised(router, 2)
    tokens = torch.randn(3, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    codes = np.stack([pool.expert(j).get_parameter("code").detach().numpy() for j in range(M)])
    keys = torch.nn.functional.linear(tokens, router.weight, router.bias).detach().numpy()
    for form in FORMS:
        found = form(tokens, pool, router)
        for example in range(len(tokens)):
            messages = numpy_modulated(tokens[example].numpy(), pool.get_submodule("shared"), codes)
            plain = {name: value for name, value in option.items() if name != "bias"}
            expected = numpy_agreement(messages, keys[example], iterations, **plain)  # type: ignore[arg-type]
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours[example].detach().numpy(), theirs, atol=1e-10)


def test_tokens_are_positions_row_by_row() -> None:
    image = torch.arange(20 * 6 * 5.0).reshape(1, 20, 6, 5)
    tokens = Tokens()(image)
    assert tokens.shape == (1, 30, 20)
    assert torch.equal(tokens[0, 5 * 2 + 3], image[0, :, 2, 3])


class Bent(nn.Module):
    """A module that is not affine."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width_in, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))


@st.composite
def routing_problems(draw: st.DrawFn) -> dict[str, object]:
    """Sizes, options, padding (empty examples included) and ties between modules."""
    outer = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    N = draw(st.integers(1, 6))
    padded = len(outer) == 1 and draw(st.booleans())
    return {
        "outer": outer,
        "N": N,
        "M": draw(st.integers(1, 4)),
        "lengths": draw(st.lists(st.integers(0, N), min_size=outer[0], max_size=outer[0])) if padded else None,
        "iterations": draw(st.integers(0, 5)),
        "update": draw(st.sampled_from(["sum", "normalised"])),
        "residual": draw(st.booleans()),
        "tied": draw(st.booleans()),
        "width": draw(st.sampled_from([3, 6])),
        "seed": draw(st.integers(0, 2**16)),
    }


def routed(
    form: nn.Module, problem: dict[str, object], kind: str
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """What a form yields for a problem, and the gradients it gives to tokens, router and modules."""
    size, seed, width_in, width = problem["M"], problem["seed"], 4, problem["width"]
    assert isinstance(size, int) and isinstance(seed, int) and isinstance(width, int)
    if kind == "modulated":
        pool = modulated_pool(size, width_in, width)
    else:
        expert = nn.Linear if kind == "linear" else Bent
        pool = Pool([expert(width_in, width) for _ in range(size)]).double()
    router = Agreement(
        width_in,
        width,
        problem["iterations"],
        True,
        problem["update"],
        problem["residual"],  # type: ignore[arg-type]
    ).double()
    randomised(pool, seed), randomised(router, seed + 1)
    if problem["tied"]:
        first = list(pool.expert(0).parameters())
        for j in range(1, size):
            for mine, its in zip(pool.expert(j).parameters(), first, strict=True):
                mine.data.copy_(its.data)
    generator = torch.Generator().manual_seed(seed + 2)
    tokens = torch.randn(*problem["outer"], problem["N"], width_in, dtype=torch.float64, generator=generator)  # type: ignore[misc]
    tokens.requires_grad_()
    length = None if problem["lengths"] is None else torch.tensor(problem["lengths"])
    results = list(form(tokens, pool, router, real=valid(tokens, -2, length)))
    weights = [torch.randn(r.shape, dtype=torch.float64, generator=generator) for r in results]
    sum((r * w).sum() for r, w in zip(results, weights, strict=True)).backward()  # type: ignore[union-attr]
    named = [*pool.named_parameters(), *router.named_parameters(), ("tokens", tokens)]
    return results, {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in named}


@pytest.mark.parametrize("kind", ["modulated", "linear", "bent"])
@settings(max_examples=40, deadline=None)
@given(problem=routing_problems())
def test_dense_forms_equal_message_passing_in_values_and_gradients(kind: str, problem: dict[str, object]) -> None:
    reference, gradients = routed(AgreementMessagePassing(), problem, kind)
    for form in (AgreementDense(), AgreementFactorised()):
        if kind == "bent" and isinstance(form, AgreementFactorised):
            continue
        results, its_gradients = routed(form, problem, kind)
        for ours, theirs in zip(results, reference, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10 * max(1.0, theirs.abs().max().item()))
        for name, gradient in gradients.items():
            largest = max(1.0, gradient.abs().max().item())
            torch.testing.assert_close(its_gradients[name], gradient, rtol=0, atol=1e-9 * largest, msg=name)


@settings(max_examples=30, deadline=None)
@given(problem=routing_problems())
def test_gates_are_a_distribution_over_modules_for_real_tokens_and_zero_for_padding(
    problem: dict[str, object],
) -> None:
    (_, gates, _), _ = routed(AgreementFactorised(), problem, "modulated")
    outer, N = problem["outer"], problem["N"]
    lengths = problem["lengths"] or [N] * outer[0]  # type: ignore[index]
    for example, length in enumerate(lengths):  # type: ignore[arg-type, var-annotated]
        assert torch.allclose(gates[example][..., :length, :].sum(-1), torch.ones((), dtype=torch.float64))
        assert not gates[example][..., length:, :].any()


def test_an_example_does_not_depend_on_its_batch() -> None:
    pool, router = modulated_pool(3, 4, 5), Agreement(4, 5, 3).double()
    randomised(pool, 0), randomised(router, 1)
    tokens = torch.randn(4, 6, 4, dtype=torch.float64)
    for form in FORMS:
        together = form(tokens, pool, router)[0]
        alone = torch.cat([form(tokens[i : i + 1], pool, router)[0] for i in range(4)])
        torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)


def test_the_winner_of_a_fixed_disagreement_gains_log_odds_linearly() -> None:
    """Theorem 1's mechanism: where values settle, α of the best module grows by a fixed gap each round."""
    pool = Pool([nn.Linear(2, 2, bias=False) for _ in range(2)]).double()
    pool.expert(0).get_parameter("weight").data.copy_(torch.eye(2))
    pool.expert(1).get_parameter("weight").data.copy_(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    tokens = torch.tensor([[[1.0, 0.2]]], dtype=torch.float64)
    odds = []
    for iterations in (10, 20, 40, 80):
        router = Agreement(2, 2, iterations).double()
        router.weight.data.copy_(torch.eye(2))
        _, _, scores = AgreementMessagePassing()(tokens, pool, router)
        odds.append((scores[0, 0, 0] - scores[0, 0, 1]).item())
    np.testing.assert_allclose(odds, np.array([10, 20, 40, 80]) * (odds[0] / 10), rtol=1e-9)
    assert odds[0] > 1


@pytest.mark.parametrize("seed", range(6))
def test_gates_become_zero_or_one_where_values_settle(seed: int) -> None:
    """Theorem 1: modules with fixed results (zero weights, a bias) settle at once, so that each round adds the same
    cosines; with T >= 20 / gap, the gap between the two largest, a token's gate is one for its best module."""
    torch.manual_seed(seed)
    modules, width = 4, 5
    pool = Pool([nn.Linear(width, width) for _ in range(modules)]).double()
    for j in range(modules):
        pool.expert(j).get_parameter("weight").data.zero_()
    results = torch.stack([pool.expert(j).get_parameter("bias") for j in range(modules)]).detach()
    tokens = results.repeat(3, 1)[None] + 0.05 * torch.randn(1, 3 * modules, width, dtype=torch.float64)
    router = Agreement(width, width, 1).double()
    router.weight.data.copy_(torch.eye(width))
    cosines = torch.cosine_similarity(tokens[0, :, None], results[None], dim=-1)
    best = cosines.sort(-1, descending=True).values
    router.iterations = math.ceil(20 / (best[:, 0] - best[:, 1]).min().item())
    for form in FORMS:
        _, gates, _ = form(tokens, pool, router)
        expected = nn.functional.one_hot(cosines.argmax(-1), modules).double()
        torch.testing.assert_close(gates[0], expected, rtol=0, atol=1e-8)
