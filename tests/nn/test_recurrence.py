"""Linear recurrences at all steps at once against loops: any length, gates of zero and near it, gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from modgraph.nn import Contract, chunk_weights, matrix_recurrence, recurrence, run_matrix_recurrence, run_recurrence

LENGTHS = (1, 2, 63, 64, 65, 200)
B, E, V, K = 2, 3, 4, 5


def sample(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def sample_gates(*shape: int) -> Tensor:
    """Gates from −0.1 to 1.1; a tenth of them are zero, and a tenth 1e-30."""
    gate = 1.2 * torch.rand(*shape, dtype=torch.float64) - 0.1
    for value in (0.0, 1e-30):
        gate = gate.masked_fill(torch.rand(*shape) < 0.1, value)
    return gate.requires_grad_()


def hold(found: Sequence[Tensor], expected: Sequence[Tensor], leaves: Sequence[Tensor], rtol: float = 1e-9) -> None:
    """Compare values, and gradients of a random sum of them."""
    weights = [torch.randn_like(each) for each in expected]
    grads = []
    for values in (found, expected):
        total = sum((value * weight).sum() for value, weight in zip(values, weights, strict=True))
        grads.append(torch.autograd.grad(total, leaves))  # type: ignore[arg-type]
    for ours, theirs in zip((*found, *grads[0]), (*expected, *grads[1]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=rtol, atol=rtol * (1 + float(theirs.detach().abs().max())))


def loop(gate: Tensor, offset: Tensor, state: Tensor) -> Tensor:
    states = []
    for time in range(offset.shape[1]):
        state = gate[:, min(time, gate.shape[1] - 1)] * state + offset[:, time]
        states.append(state)
    return torch.stack(states, 1)


@pytest.mark.parametrize("wide", [1, 1_000, 10**9], ids=["one chunk", "some", "many chunks"])
@pytest.mark.parametrize("shape", [(B, -1, V, K), (B, -1, 1, K), (1, 1, V, 1)], ids=str)
def test_a_recurrence_is_its_loop(shape: tuple[int, ...], wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "WIDE", wide)
    for time in LENGTHS:
        gate = sample_gates(*(time if size == -1 else size for size in shape))
        offset, initial = sample(B, time, V, K), sample(B, V, K)
        states = loop(gate, offset, initial)
        hold(run_recurrence(gate, offset, initial), [states, states[:, -1]], [gate, offset, initial])


def test_a_recurrence_that_is_exported_is_its_loop() -> None:
    for time in LENGTHS:
        gate, offset, initial = sample_gates(B, time, V, 1), sample(B, time, V, K), sample(B, V, K)
        found = recurrence._double(gate, offset, initial)
        hold([found], [loop(gate, offset, initial)], [gate, offset, initial])


@pytest.mark.slow
def test_a_recurrence_is_differentiated_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "WIDE", 10**9)
    given = sample_gates(1, 5, 1, 2), sample(1, 5, 2, 2), sample(1, 2, 2)
    assert torch.autograd.gradgradcheck(run_recurrence, given)
    matrices = sample(1, 3, 1, 2, 2), sample(1, 3, 2, 3, 2), sample(1, 2, 3, 2)
    assert torch.autograd.gradgradcheck(matrix_recurrence.multiply_chunks, matrices)
    assert torch.autograd.gradgradcheck(chunk_weights.multiply_up, (sample_gates(2, 4),))

    def weigh(*given: Tensor) -> tuple[Tensor, ...]:
        from_start, (pairs, others), ends, whole = chunk_weights.weigh(
            given[0], [given[1]], [(given[2], False), (given[3], True)]
        )
        return *from_start, *pairs, *others, *ends, whole

    assert torch.autograd.gradgradcheck(weigh, tuple(sample_gates(1, 3, 2) for _ in range(4)))


def test_a_thousand_steps_of_one_are_a_sum_in_32_bits() -> None:
    x = torch.randn(2, 1_000, 3)
    found, _ = run_recurrence(torch.ones(1, 1, 3), x, torch.zeros(2, 3))
    torch.testing.assert_close(found, x.double().cumsum(1).float(), rtol=1e-5, atol=1e-4)


def loop_matrix(
    gate: Tensor, product: Any, outer: Sequence[Any], queries: Sequence[Any], state: Tensor
) -> tuple[list[Tensor], Tensor, Tensor | None]:
    read: list[list[Tensor]] = [[] for _ in queries]
    of_state = []
    for time in range(gate.shape[1]):
        before, state = state, state * gate[:, time].unsqueeze(-2)
        for at, (u, z) in enumerate(outer):
            w = u[:, time]
            if product is not None and at == 0:
                x, c = (each[:, time] for each in product)
                of_state.append((before @ x.unsqueeze(-1)).squeeze(-1))
                w = w + c * of_state[-1]
            state = state + w.unsqueeze(-1) * z[:, time].unsqueeze(-2)
        for found, (query, is_before) in zip(read, queries, strict=True):
            found.append(((before if is_before else state) @ query[:, time].unsqueeze(-1)).squeeze(-1))
    return [torch.stack(each, 1) for each in read], state, torch.stack(of_state, 1) if of_state else None


def hold_matrix(run: Callable[..., Any], time: int, columns: int, is_delta: bool, **options: bool) -> None:
    gate, initial = sample_gates(B, time, E, columns), sample(B, E, V, K)
    key = torch.nn.functional.normalize(torch.randn(B, time, E, K, dtype=torch.float64), dim=-1)
    x = key.clone().requires_grad_()
    c = (-torch.rand(B, time, E, 1, dtype=torch.float64)).requires_grad_()
    y = key.clone().requires_grad_()
    outer = [(sample(B, time, E, V), y if is_delta else sample(B, time, E, K))]
    outer.append((sample(B, time, 1, V), sample(B, time, E, K)))
    queries = [(sample(B, time, E, K), False), (sample(B, time, 1, K), True)]
    given = gate, (x, c) if is_delta else None, outer, queries, initial
    leaves = [gate, initial, *(each for pair in outer for each in pair), *(each for each, _ in queries)]
    leaves += [x, c] if is_delta else []
    values = []
    for function in (run, loop_matrix):
        read, last, of_state = function(*given, **(options if function is run else {}))
        values.append([*read, last, *([] if of_state is None else [of_state])])
    hold(values[0], values[1], leaves)


@pytest.mark.some(2)
@pytest.mark.parametrize("is_delta", [False, True], ids=["outer products", "delta rule"])
@pytest.mark.parametrize("columns", [1, K], ids=["one gate", "gates of columns"])
def test_a_recurrence_of_matrices_is_its_loop(columns: int, is_delta: bool) -> None:
    for time in LENGTHS:
        hold_matrix(run_matrix_recurrence, time, columns, is_delta, reads=is_delta)


def test_equal_keys_cancel_nothing() -> None:
    """Powers of the triangular matrix of 64 equal keys have binomial coefficients of 1e18; its inverse has none."""
    lower = -torch.ones(64, 64, dtype=torch.float64).tril(-1)
    expected = torch.linalg.inv(torch.eye(64, dtype=torch.float64) - lower)
    torch.testing.assert_close(matrix_recurrence._invert(lower), expected, rtol=0, atol=1e-12)


@pytest.mark.some(1)
@pytest.mark.parametrize("equation", ["...vk,...k->...v", "...hvk,...hk->...hv", "...hkv,...hk->...hv"])
def test_products_of_matrices_and_vectors_are_einsums(equation: str) -> None:
    shapes = {"h": 2, "v": 3, "k": 4}
    left, right = [sample(5, *(shapes[letter] for letter in each[3:])) for each in equation.split("->")[0].split(",")]
    for swapped in (False, True):
        terms, result = equation.split("->")
        given = (right, left) if swapped else (left, right)
        contract = Contract("->".join([",".join(terms.split(",")[:: -1 if swapped else 1]), result]))
        hold([contract(*given)], [torch.einsum(equation, left, right)], [left, right])
        assert torch.autograd.gradgradcheck(contract, given)
