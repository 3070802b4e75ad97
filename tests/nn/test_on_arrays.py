"""What layers compute on numpy arrays is what they compute on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from modgraph.nn.along_axis import Mean, Softmax, Sum
from modgraph.nn.arithmetic import Arithmetic
from modgraph.nn.choice import MaskedSoftmax, TopKMask
from modgraph.nn.elementwise import Clamp, Elementwise
from modgraph.nn.linear import Linear
from modgraph.nn.on_arrays import MAKERS, find_array_function
from modgraph.nn.rotary import ScaledRotary
from modgraph.nn.shape import Concat, Flatten, Merge, Split, Transpose, Unmerge
from tests.ordinary_run import some_examples

SHAPES = (1, 1, 6), (1, 1, 4, 6)
ONE, TWO = ("x",), ("x", "x")
LAYERS: list[tuple[Callable[[], Any], tuple[str, ...]]] = [
    *[(lambda symbol=symbol: Arithmetic(symbol), TWO) for symbol in "+-*/"],
    (lambda: Arithmetic("/", right=3.0), ONE),
    (lambda: Arithmetic("-", left=1.0), ONE),
    (lambda: Arithmetic("*", right_lacks=(-1,)), ("x", "row")),
    *[(lambda name=name: Elementwise(name), ONE) for name in ("exp", "log", "sqrt", "sin", "cos", "abs")],
    (lambda: Clamp(-0.5, None), ONE),
    (lambda: Clamp(None, 0.5), ONE),
    (nn.SiLU, ONE),
    (nn.Sigmoid, ONE),
    (nn.Tanh, ONE),
    (nn.ReLU, ONE),
    (lambda: Linear(6, 4), ONE),
    (lambda: Linear(6, 4, bias=False), ONE),
    (lambda: nn.RMSNorm(6), ONE),
    (lambda: nn.RMSNorm(6, eps=0.1), ONE),
    *[(lambda axis=axis: Softmax(axis), ONE) for axis in (-1, -2)],
    *[(lambda axis=axis: MaskedSoftmax(axis), ("x", "choice")) for axis in (-1, -2)],
    *[(lambda k=k, axis=axis: TopKMask(axis, k), ONE) for k in (1, 3) for axis in (-1, -2)],
    (lambda: Sum(-1), ONE),
    (lambda: Mean(-2), ONE),
    (lambda: Split((1, 3, 2)), ONE),
    (lambda: Merge(-2, -1), ONE),
    (lambda: Unmerge(-1, (2, 3)), ONE),
    (lambda: Flatten(2), ONE),
    (lambda: Flatten(0), ONE),
    (lambda: Transpose((-1, -2)), ONE),
    (lambda: Concat(), TWO),
    (lambda: ScaledRotary(6, -2, 100.0, lacks=()), ("x", "row")),
    (lambda: ScaledRotary(4, -2, 100.0, scaled=8.0, lacks=()), ("x", "row")),
]


def make_operand(kind: str, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Values with ties, positive ones, and infinite ones; a choice may choose nothing."""
    source = torch.Generator().manual_seed(seed)
    if kind == "row":
        return torch.randint(0, 50, shape[:-1], generator=source).float()
    if kind == "choice":
        return torch.randint(0, 2 if seed % 3 else 1, shape, generator=source).float()
    return torch.randint(-4, 5, shape, generator=source) / 2 if seed % 4 else 100 * torch.randn(shape, generator=source)


@some_examples(40)
@given(st.sampled_from(LAYERS), st.sampled_from(SHAPES), st.integers(0, 10**6))
def test_a_layer_gives_the_same(
    layer: tuple[Callable[[], Any], tuple[str, ...]], shape: tuple[int, ...], seed: int
) -> None:
    make, kinds = layer
    module = make()
    for weight in module.parameters():
        nn.init.uniform_(weight, 0.5, 2)
    operands = [make_operand(kind, shape, seed + at) for at, kind in enumerate(kinds)]
    compute = find_array_function(module)
    assert compute is not None
    with torch.no_grad(), np.errstate(all="ignore"):
        expected, found = module(*operands), compute(*[each.numpy() for each in operands])
    found, expected = (each if isinstance(each, tuple) else (each,) for each in (found, expected))
    assert len(found) == len(expected)
    for got, value in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(got), value, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_each_kind_of_layer_is_compared() -> None:
    assert {type(make()) for make, _ in LAYERS} == {*MAKERS}


@pytest.mark.parametrize(
    "layer",
    [
        Arithmetic("<"),
        Arithmetic("+", ids=True),
        Elementwise("erf"),
        nn.RMSNorm(4, elementwise_affine=False),
        nn.GELU(),
    ],
)
def test_other_layers_have_no_such_function(layer: nn.Module) -> None:
    assert find_array_function(layer) is None


def test_it_follows_weights_that_are_trained_in_place() -> None:
    norm, x = nn.RMSNorm(4), torch.randn(1, 1, 4)
    compute = find_array_function(norm)
    assert compute is not None
    with torch.no_grad():
        norm.weight.mul_(3)
        torch.testing.assert_close(torch.from_numpy(compute(x.numpy())), norm(x))
