"""Agreement routing against the equations in numpy, in every form, and what Theorem 1 says of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.nn import Tokens
from tests.nn.by_router import Given, given_by, messages_of, randomised
from tests.ordinary_run import some_examples

Array = NDArray[np.float64]
POOLS = {
    "modulated": ("modulated_linear(V)", (None, "dense", "message_passing")),
    "linear": ("linear(V)", (None, "dense", "message_passing")),
    "bent": ("linear(V) -> tanh", (None, "message_passing")),
}


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


def agreeing(
    modules: str, size: int, widths: tuple[int, int], arguments: str, lowering: str | None = None, axes: str = "time, "
) -> Model:
    """Tokens [B, axes, D] to modules by agreement, weights at random."""
    D, V = widths
    text = f"""model m() {{ input x: float[{axes}{D}] pool p[{size}] = {modules.replace("V", str(V))}
      router r = agreement({arguments}) y = x -> p by r output y }}"""
    model = modgraph.loads(text).build(lowering=lowering).double()
    randomised(model, 7)
    return model


def keys_of(model: Model, x: Tensor) -> Array:
    weights = {name.removeprefix("r."): each for name, each in model.named_parameters() if name.startswith("r.")}
    found: Array = torch.nn.functional.linear(x, weights["weight"], weights.get("bias")).detach().numpy()
    return found


OFFICIAL = {"update": "normalised", "residual": True, "bias": True}


@pytest.mark.some(6)
@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize(
    ("iterations", "sizes", "length", "option"),
    [
        (0, (6, 2, 5, 7), (6, 3, 1), OFFICIAL),
        (1, (3, 3, 4, 4), (3, 3, 3), {}),
        (3, (6, 2, 5, 7), (6, 3, 1), OFFICIAL),
        (3, (5, 1, 4, 3), (5, 4, 5), {}),
    ],
)
def test_every_lowering_computes_algorithm_1(
    kind: str, iterations: int, sizes: tuple[int, int, int, int], length: tuple[int, ...], option: dict[str, Any]
) -> None:
    N, M, *widths = sizes
    said = {True: "true", "normalised": '"normalised"'}
    arguments = ", ".join([str(iterations), *(f"{name}={said[value]}" for name, value in option.items())])
    x = torch.randn(3, N, widths[0], dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    modules, lowerings = POOLS[kind]
    for lowering in lowerings:
        model = agreeing(modules, M, (widths[0], widths[1]), arguments, lowering)
        value, records = given_by(model, x, torch.tensor(length)).numpy()
        messages, keys = messages_of(model, x).detach().numpy(), keys_of(model, x)
        plain = {name: each for name, each in option.items() if name != "bias"}
        for example, count in enumerate(length):
            expected = numpy_agreement(messages[example, :count], keys[example, :count], iterations, **plain)
            found = value[example], *(records[name][example, :count] for name in ("gates", "scores"))
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-10)
            assert not any(each[example, count:].any() for each in records.values())


def test_tokens_are_positions_row_by_row() -> None:
    image = torch.arange(20 * 6 * 5.0).reshape(1, 20, 6, 5)
    tokens = Tokens()(image)
    assert tokens.shape == (1, 30, 20)
    assert torch.equal(tokens[0, 5 * 2 + 3], image[0, :, 2, 3])


@st.composite
def routing_problems(draw: st.DrawFn) -> dict[str, Any]:
    """Sizes, options, padding, empty examples included, and axes."""
    axes, outer = draw(st.sampled_from([("time, ", ()), ("2, time, ", (2,)), ("time, 3, ", ()), ("", ())]))
    residual = draw(st.sampled_from(["true", "false"]))
    update, bias = draw(st.sampled_from(["sum", "normalised"])), draw(st.sampled_from(["true", "false"]))
    return {
        "shape": (3, *outer, *((5,) if "time" in axes else ()), *((3,) if axes == "time, 3, " else ()), 4),
        "axes": axes,
        "length": draw(st.sampled_from([None, [5, 2, 0]])) if axes else None,
        "size": draw(st.integers(1, 4)),
        "width": draw(st.sampled_from([3, 9])),
        "arguments": f'{draw(st.integers(0, 3))}, update="{update}", residual={residual}, bias={bias}',
    }


@pytest.mark.parametrize("kind", POOLS)
@some_examples(12)
@given(problem=routing_problems())
def test_every_lowering_equals_message_passing_in_values_and_gradients(kind: str, problem: dict[str, Any]) -> None:
    modules, lowerings = POOLS[kind]
    routed = [with_gradients(modules, lowering, problem) for lowering in lowerings]
    for found in routed[:-1]:
        torch.testing.assert_close(found, routed[-1], atol=1e-9, rtol=1e-9)


def with_gradients(modules: str, lowering: str | None, problem: dict[str, Any]) -> list[Tensor]:
    model = agreeing(modules, problem["size"], (4, problem["width"]), problem["arguments"], lowering, problem["axes"])
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(problem["shape"], dtype=torch.float64, generator=generator).requires_grad_()
    found = given_by(model, x, None if problem["length"] is None else torch.tensor(problem["length"]))
    results = [found.value, *found.records.values()]
    weighted = [(each * torch.randn(each.shape, dtype=each.dtype, generator=generator)).sum() for each in results]
    read = [x, *model.parameters()]
    return [*results, *torch.autograd.grad(torch.stack(weighted).sum(), read, materialize_grads=True)]


def test_gates_are_a_distribution_over_modules_and_an_example_does_not_depend_on_its_batch() -> None:
    x = torch.randn(4, 6, 4, dtype=torch.float64)
    for lowering in POOLS["linear"][1]:
        model = agreeing("linear(V)", 3, (4, 5), "3", lowering)
        together = given_by(model, x)
        torch.testing.assert_close(together.records["gates"].sum(-1), torch.ones(4, 6, dtype=torch.float64))
        separate = torch.cat([given_by(model, x[i : i + 1]).value for i in range(4)])
        torch.testing.assert_close(together.value, separate, rtol=0, atol=1e-12)


def with_weights(modules: str, size: int, width: int, arguments: str, weights: dict[str, Tensor], x: Tensor) -> Given:
    """What agreement gives where tokens are their own keys, and modules have given weights."""
    model = agreeing(modules, size, (width, width), arguments)
    for name, value in {"r.weight": torch.eye(width), **weights}.items():
        model.get_parameter(name).data.copy_(value)
    return given_by(model, x)


def test_the_winner_of_a_fixed_disagreement_gains_log_odds_linearly() -> None:
    """Theorem 1's mechanism: where values settle, α of the best module grows by a fixed gap each round."""
    turned = {"p.0.linear.weight": torch.eye(2), "p.1.linear.weight": torch.tensor([[0.0, -1.0], [1.0, 0.0]])}
    x = torch.tensor([[[1.0, 0.2]]], dtype=torch.float64)
    odds = []
    for iterations in (10, 20, 40):
        scores = with_weights("linear(V, bias=false)", 2, 2, str(iterations), turned, x).records["scores"]
        odds.append((scores[0, 0, 0] - scores[0, 0, 1]).item())
    np.testing.assert_allclose(odds, np.array([10, 20, 40]) * (odds[0] / 10), rtol=1e-9)
    assert odds[0] > 1


@pytest.mark.parametrize("seed", range(2))
def test_gates_become_zero_or_one_where_values_settle(seed: int) -> None:
    """Theorem 1: modules with fixed results (zero weights, a bias) settle at once, so that each round adds the same
    cosines; with T >= 20 / gap, the gap between the two largest, a token's gate is one for its best module."""
    torch.manual_seed(seed)
    results = torch.randn(4, 5, dtype=torch.float64)
    fixed = {
        f"p.{j}.linear.{name}": each
        for j in range(4)
        for name, each in (("weight", torch.zeros(5, 5)), ("bias", results[j]))
    }
    x = results.repeat(3, 1)[None] + 0.05 * torch.randn(1, 12, 5, dtype=torch.float64)
    cosines = torch.cosine_similarity(x[0, :, None], results[None], dim=-1)
    best = cosines.sort(-1, descending=True).values
    iterations = math.ceil(20 / (best[:, 0] - best[:, 1]).min().item())
    gates = with_weights("linear(V)", 4, 5, str(iterations), fixed, x).records["gates"]
    expected = torch.nn.functional.one_hot(cosines.argmax(-1), 4).double()
    torch.testing.assert_close(gates[0], expected, rtol=0, atol=1e-8)
