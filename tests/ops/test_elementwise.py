"""Functions of each number, comparison and choice: against numpy, their gradients, and blind to padding."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import modgraph
from modgraph import ModgraphError

Array = NDArray[np.float64]
GENERATOR = np.random.default_rng(0)
A, B, C = GENERATOR.normal(size=(2, 3, 4)), GENERATOR.normal(size=(2, 3, 4)), GENERATOR.normal(size=(2, 4))
B[0, 0] = A[0, 0]

OF_ONE: dict[str, Callable[[Array], Any]] = {
    "a -> exp": np.exp,
    "a ** 2 -> log": lambda a: np.log(a**2),
    "a ** 2 -> sqrt": lambda a: np.sqrt(a**2),
    "a -> sin": np.sin,
    "a -> cos": np.cos,
    "abs(a)": np.abs,
    "a -> sign": np.sign,
    "a * 2 -> round": lambda a: np.round(a * 2),
    "floor(a)": np.floor,
    "a + floor(2.5) + round(1.5)": lambda a: a + 4,
    "a -> erf": np.vectorize(erf),
    "a -> clamp(min=-0.5, max=1)": lambda a: np.clip(a, -0.5, 1),
    "a -> clamp(max=0)": lambda a: np.minimum(a, 0),
    "a -> clamp(0.25)": lambda a: np.maximum(a, 0.25),
    "a -> minimum(0.1)": lambda a: np.minimum(a, 0.1),
    "maximum(a, -1)": lambda a: np.maximum(a, -1),
    "a < 0.5": lambda a: a < 0.5,
    "0.5 < a": lambda a: a > 0.5,
    "0 >= a": lambda a: a <= 0,
    "(a -> relu) == 0": lambda a: a <= 0,
    "0 != (a -> relu)": lambda a: a > 0,
    "(a > 0, a) -> where(otherwise=-3)": lambda a: np.where(a > 0, a, -3),
    "where(a > 0, 2, a)": lambda a: np.where(a > 0, 2, a),
    "where(a, a, 2)": lambda a: a,
    "where(a > 0, 1, 2)": lambda a: np.where(a > 0, 1, 2),
    "where(a > 0, 0.1, 2)": lambda a: np.where(a > 0, 0.1, 2),  # 0.1 in 64 bits
    "minimum(0.2, a)": lambda a: np.minimum(a, 0.2),
    "less(a, 0.3)": lambda a: a < 0.3,
    "a * sqrt(2) + log(exp(3))": lambda a: a * np.sqrt(2) + 3,
}
OF_MORE: dict[str, Callable[[Array, Array, Array], Any]] = {
    "(a, b) -> minimum": lambda a, b, c: np.minimum(a, b),
    "(c, a) -> maximum": lambda a, b, c: np.maximum(c[:, None], a),
    "a < b": lambda a, b, c: a < b,
    "a <= b": lambda a, b, c: a <= b,
    "a > c": lambda a, b, c: a > c[:, None],
    "c >= a": lambda a, b, c: c[:, None] >= a,
    "a == b": lambda a, b, c: a == b,
    "a != b": lambda a, b, c: a != b,
    "(c > 0, a, b) -> where": lambda a, b, c: np.where(c[:, None] > 0, a, b),
    "where(a, c, b)": lambda a, b, c: np.where(a != 0, c[:, None], b),
}
NUMPY: dict[str, Callable[[Array, Array, Array], Any]] = {
    **{text: lambda a, b, c, f=f: f(a) for text, f in OF_ONE.items()},  # type: ignore[misc]
    **OF_MORE,
}
INPUTS = "input a: float[3, 4] input b: float[3, 4] input c: float[4]"


def test_each_is_what_numpy_says() -> None:
    outputs = " ".join(f"y{at} = {text} output y{at}" for at, text in enumerate(NUMPY))
    model = modgraph.loads(f"model m() {{ {INPUTS} {outputs} }}").build().double()
    found = model(*map(torch.from_numpy, (A, B, C)))
    assert isinstance(found, dict)
    for value, (text, function) in zip(found.values(), NUMPY.items(), strict=True):
        assert value.dtype == torch.float64
        np.testing.assert_allclose(value.numpy(), function(A, B, C), rtol=1e-12, err_msg=text)


DIFFERENTIABLE = [
    text for text in NUMPY if not any(sign in text for sign in ("<", ">=", "==", "!=", "sign", "a > c", "less", "1, 2"))
]


@pytest.mark.some(10)
@pytest.mark.parametrize("text", [*DIFFERENTIABLE, "a / b", "2 / b", "a ** 2 / c", "(a ** 2) ** 0.25"])
def test_a_gradient_is_that_of_finite_differences(text: str) -> None:
    model = modgraph.loads(f"model m() {{ {INPUTS} y = {text} output y }}").build().double()
    inputs = [torch.from_numpy(each[:1] + 0.03).requires_grad_() for each in (A, B + 0.01, C)]
    assert torch.autograd.gradcheck(model, inputs)
    assert torch.autograd.gradgradcheck(model, inputs)


def test_a_comparison_has_no_gradient() -> None:
    model = modgraph.loads(f"model m() {{ {INPUTS} y = (a < b) + (c >= 0.1) output y }}").build()
    found = model(*(torch.randn(2, *shape, requires_grad=True) for shape in ((3, 4), (3, 4), (4,))))
    assert isinstance(found, Tensor) and not found.requires_grad


def gradient_of(text: str, x: list[float]) -> list[float]:
    model = modgraph.loads(f"model m() {{ input x: float[{len(x)}] y = {text} output y }}").build()
    values = torch.tensor([x], requires_grad=True)
    found = model(values)
    assert isinstance(found, Tensor)
    found.sum().backward()
    assert values.grad is not None
    return [*values.grad[0].tolist()]


@pytest.mark.parametrize("infinite", ["x -> log", "1 / x", "x / x ** 2", "x -> sqrt", "x ** 0.5", "x ** -1"])
def test_the_side_not_taken_has_a_gradient_of_zero_even_where_it_is_infinite(infinite: str) -> None:
    found = gradient_of(f"(x > 0, {infinite}, 3 * x) -> where", [4.0, 0.0, -1.0])
    assert found[1:] == [3.0, 3.0]
    assert np.isfinite(found[0]) and found[0] != 0
    assert gradient_of("(x <= 0, x) -> where(otherwise=0)", [2.0, 0.0]) == [0.0, 1.0]


PADDED = {
    "log": "h -> log",
    "root": "h -> sqrt",
    "quotient": "1 / h",
    "log of softmax": '(h -> softmax(axis="time")) * h -> log',
    "where": "(h > 0.2, h -> log, h -> exp) -> where",
    "exp": "h -> exp -> clamp(max=9)",
    "larger": "(h, h ** 2) -> maximum -> sqrt",
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", PADDED)
def test_what_stands_in_padding_reaches_neither_values_nor_gradients(name: str, training: bool) -> None:
    text = f"""model m() {{ input x: float[time, 3] h = x -> linear(2, bias=false)
      y = {PADDED[name]} -> mean output y }}"""
    model = modgraph.loads(text).build().double().train(training)
    length, found = torch.tensor([4, 2, 0]), []
    mask = torch.arange(4) < length[:, None]
    values = torch.rand(3, 4, 3, dtype=torch.float64) * torch.tensor([1.0, 2.0, 3.0])
    model.load_state_dict({key: each.abs() + 0.1 for key, each in model.state_dict().items()})
    for padding in (0.0, torch.inf, torch.nan):
        model.zero_grad()
        y = model(torch.where(mask[..., None], values, padding), time_length=length)
        assert isinstance(y, Tensor)
        if training:
            y.sum().backward()
        found.append([y.detach(), *(weight.grad.clone() for weight in model.parameters() if weight.grad is not None)])
        assert all(torch.isfinite(each).all() for each in found[-1])
    assert not training or any(each.any() for each in found[0][1:])
    torch.testing.assert_close(found, [found[0]] * len(found), atol=0, rtol=0)


def test_nothing_is_cut_at_both_ends_and_bounds_are_in_order() -> None:
    for call, words in (("clamp", "no bound"), ("clamp(min=1, max=0)", "min comes first")):
        with pytest.raises(ModgraphError, match=words):
            modgraph.loads(f"model m() {{ input x: float[3] y = x -> {call} output y }}")


def test_functions_of_constants_are_not_taken_for_ops_of_their_name() -> None:
    text = """model m(n=3) { input x: float[4, 4] y = x -> linear(max(n, 5) + abs(-2) + sum([1, 2]) + min(n, 9))
      z = min(y, axis=-1) w = abs(y) output z output w }"""
    graph = modgraph.loads(text.replace("z = min(y, axis=-1)", "z = max(y, axis=-1)")).ir
    assert [str(graph.type_of(each)) for each in graph.outputs.values()] == ["float[4]", "float[4, 13]"]


@pytest.mark.parametrize(
    ("wrong", "help_"),
    [
        ("(x > 0) and (x < 1)", "multiply"),
        ("not (x > 0)", "1 - (a > 0)"),
        ("(x > 0, x) -> where", "where(condition, a, 0)"),
        ("max(0, x)", "maximum(0, x)"),
    ],
)
def test_logic_of_values_is_written_otherwise(wrong: str, help_: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ input x: float[3] y = {wrong} output y }}")
    assert help_ in str(caught.value)


def test_where_is_a_word_like_any_other_but_behind_the_condition_of_grow() -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads("model m() { input x: float[3] grow p by r when (x > 1, x, x) -> where where true output x }")
    assert [each.code for each in caught.value.diagnostics] == ["MG201", "MG201", "MG251"]
    modgraph.loads("model m() { input x: float[3] where = where(x > 1, x, 1 - x) output where }")
