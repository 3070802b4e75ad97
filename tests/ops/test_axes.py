"""Ops along an axis and on axes: against numpy, their gradients, blind to padding, and in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle
from numpy.typing import NDArray
from torch import Tensor

import modgraph
from modgraph import ModgraphError
from modgraph.ir import OpNode, grow, weights_of
from modgraph.passes import INFERENCE, apply_passes

Array = NDArray[np.float64]


def ranks(x: Array, axis: int, descending: bool = False) -> Array:
    """By definition: how many stand before each."""
    x = np.moveaxis(-x if descending else x, axis, -1)
    less = (x[..., None, :] < x[..., :, None]).sum(-1)
    earlier = np.tril(x[..., :, None] == x[..., None, :], -1).sum(-1)
    return np.moveaxis(less + earlier, -1, axis).astype(float)


NUMPY: dict[str, Callable[[Array], Any]] = {
    "x -> cumulative_sum": lambda x: np.cumsum(x, -1),
    "x -> cumulative_sum(axis=-3)": lambda x: np.cumsum(x, 1),
    "x -> min(axis=-3)": lambda x: x.min(1),
    "x * 300 -> logsumexp": lambda x: np.logaddexp.reduce(x * 300, -1),
    "x -> logsumexp(axis=-3)": lambda x: np.logaddexp.reduce(x, 1),
    "x -> sort_order": lambda x: ranks(x, -1),
    "x -> sort_order(axis=-2, descending=true)": lambda x: ranks(x, -2, descending=True),
    "x -> kth_largest(1)": lambda x: x.max(-1),
    "x -> kth_largest(3, axis=-2)": lambda x: -np.sort(-x, -2)[..., 2, :],
    "x -> positions(axis=-2)": lambda x: np.broadcast_to(np.arange(4.0), (3, 4)),
    "x -> select(3)": lambda x: x[..., 3, :],
    "x -> select(5, axis=-1)": lambda x: x[..., 5],
    'x -> unmerge([3, 2], into=["task", ""]) -> select(1, axis="task")': lambda x: x[..., 2:4],
    "x -> transpose": lambda x: np.swapaxes(x, -1, -2),
    "x -> transpose(-1, -3)": lambda x: np.swapaxes(x, -1, -3),
    "x -> transpose(-1, -3, -2)": lambda x: x.transpose(0, 3, 1, 2),
    "x -> flatten(2)": lambda x: x.reshape(3, 2, 24),
    "x -> merge": lambda x: x.reshape(3, 2, 24),
    "x -> merge(-3, -2)": lambda x: x.reshape(3, 8, 6),
    "x -> merge(-3, -2, -1)": lambda x: x.reshape(3, 48),
    "x -> unmerge([3, 2])": lambda x: x.reshape(3, 2, 4, 3, 2),
    "x -> unmerge([2, 1, 2], axis=-2)": lambda x: x.reshape(3, 2, 2, 1, 2, 6),
    "(x, x ** 2) -> concat(axis=-3)": lambda x: np.concatenate([x, x**2], 1),
    "(x, x -> mean(axis=-2) -> new_axis(at=-2)) -> concat(axis=-2)": lambda x: np.append(x, x.mean(2)[:, :, None], 2),
    "x -> flip": lambda x: x[..., ::-1, :],
    "x -> flip(axis=-3)": lambda x: x[:, ::-1],
    "x -> new_axis(2)": lambda x: np.stack([x, x], 1),
    "x -> new_axis(at=-1)": lambda x: x[..., None],
    'x -> new_axis(3, axis="copy", at=-2)': lambda x: np.stack([x, x, x], -2),
    "(x -> mean(axis=-3), x) -> expand(-3)": lambda x: np.stack([x.mean(1)] * 2, 1),
    "(x -> mean(axis=-2), x) -> expand(-2, at=-1)": lambda x: np.stack([x.mean(2)] * 4, -1),
}


def model_of(text: str) -> modgraph.Model:
    return modgraph.loads(f"model m() {{ input x: float[2, 4, 6] y = {text} output y }}").build().double()


def test_each_is_what_numpy_says() -> None:
    outputs = " ".join(f"y{at} = {text} output y{at}" for at, text in enumerate(NUMPY))
    model = modgraph.loads(f"model m() {{ input x: float[2, 4, 6] {outputs} }}").build().double()
    x = np.random.default_rng(0).integers(0, 4, (3, 2, 4, 6)) + 0.5  # with ties
    found = model(torch.from_numpy(x))
    assert isinstance(found, dict)
    for value, (text, function) in zip(found.values(), NUMPY.items(), strict=True):
        np.testing.assert_allclose(value.numpy(), function(x), rtol=1e-12, err_msg=text)


@pytest.mark.parametrize("text", [text for text in NUMPY if "order" not in text and "positions" not in text])
def test_a_gradient_is_that_of_finite_differences(text: str) -> None:
    x = torch.rand(1, 2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(model_of(text), [x.requires_grad_()], fast_mode=True)


def test_of_equal_values_the_first_is_the_kth_largest_sooner_and_gets_the_gradient() -> None:
    model = modgraph.loads("model m() { input x: float[4] y = x -> kth_largest(2) output y }").build()
    x = torch.tensor([[1.0, 5.0, 5.0, 5.0]], requires_grad=True)
    found = model(x)
    assert isinstance(found, Tensor)
    found.sum().backward()
    assert found.tolist() == [5.0]
    assert x.grad is not None and x.grad.tolist() == [[0, 0, 1, 0]]


ENDS = {
    "cumulative_sum": 'y -> cumulative_sum(axis="time") -> last(axis="time")',
    "min": 'y -> min(axis="time")',
    "flip": 'y -> flip -> cumulative_sum(axis="time") -> last(axis="time")',
    "logsumexp": 'y -> logsumexp(axis="time")',
    "kth_largest": 'y -> kth_largest(3, axis="time")',
    "sort_order": '((y -> sort_order(axis="time", descending=true)) < 2, y, 0 * y) -> where -> sum(axis="time")',
    "positions": '(y -> positions(axis="time")) * (y -> transpose(-1, "time")) -> transpose -> sum(axis="time")',
    "merge": 'y -> unmerge([2, 2]) -> new_axis(2, axis="a") -> merge -> mean(axis="time") -> mean',
    "expand": '(((y -> mean(axis="time"), y) -> expand("time")) * y) -> mean(axis="time")',
}


@pytest.mark.parametrize("name", ENDS)
def test_padding_changes_neither_values_nor_gradients(name: str) -> None:
    text = f"model m() {{ input x: float[time, 3] y = x -> linear(4) z = {ENDS[name]} output z }}"
    length, found = torch.tensor([5, 2, 0]), []
    mask = (torch.arange(5) < length[:, None])[..., None]
    x = torch.randn(3, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for padding in (0.0, 9.0, torch.inf, torch.nan):
        model = modgraph.loads(text).build().double().train()
        z = model(torch.where(mask, x, padding), time_length=length)
        assert isinstance(z, Tensor)
        (z**2).sum().backward()
        values = model.eval()(torch.where(mask, x, padding), time_length=length)
        torch.testing.assert_close(values, z, atol=0, rtol=0)
        found.append([z.detach(), *(weight.grad for weight in model.parameters() if weight.grad is not None)])
    torch.testing.assert_close(found, [found[0]] * 4, atol=0, rtol=0)
    assert all(torch.isfinite(each).all() for each in found[0])
    single = model(x[1:2, :2])
    assert isinstance(single, Tensor)
    torch.testing.assert_close(found[0][0][1], single[0].detach())


IN_RUNTIME = """model m() { input x: float[time, 4] input v: float[6, 4]
  order = x -> sort_order(axis="time") down = v -> sort_order(axis=-2, descending=true)
  third = x -> kth_largest(3, axis="time") second = v -> kth_largest(2)
  total = x -> cumulative_sum(axis="time") -> last(axis="time") place = x -> positions(axis="time")
  turned = x -> transpose(-1, "time") least = x -> min(axis="time")
  again = (second, x) -> expand("time") back = x -> flip -> last(axis="time") whole = x / 2 -> round
  output order output down output third output second output total output place output turned output least
  output again output back output whole }"""


@pytest.mark.slow
def test_runtime_orders_equal_values_and_padding_as_torch_does(tmp_path: Path) -> None:
    model = modgraph.loads(IN_RUNTIME).build().eval()
    modgraph.export(model, tmp_path / "m.onnx")
    draw = torch.Generator().manual_seed(0)
    batch = {
        "x": torch.randint(3, (8, 11, 4), generator=draw).float(),
        "v": torch.randint(3, (8, 6, 4), generator=draw).float(),
        "time_length": torch.arange(8) + 1,
    }
    found = Bundle(tmp_path / "m.onnx").run({name: each.numpy() for name, each in batch.items()})
    for name, expected in model.compute(batch).outputs.items():
        np.testing.assert_array_equal(found[name], expected.numpy(), err_msg=name)
    np.testing.assert_array_equal(found["down"], ranks(batch["v"].double().numpy(), -2, descending=True))


def test_runtime_adds_powers_without_overflow(tmp_path: Path) -> None:
    body = 'input x: float[time, 4] y = 300 * x -> logsumexp(axis="time") z = 300 * x -> logsumexp output y output z'
    model = modgraph.loads(f"model m() {{ {body} }}").build()
    modgraph.export(model, tmp_path / "m.onnx")
    x, length = np.random.default_rng(0).standard_normal((4, 5, 4)).astype(np.float32), np.array([5, 1, 0, 3])
    found = Bundle(tmp_path / "m.onnx").run({"x": x, "time_length": length})
    pairs = zip(x, length, strict=True)
    rows = [np.logaddexp.reduce(300.0 * each[:count], 0) if count else np.zeros(4) for each, count in pairs]
    np.testing.assert_allclose(found["y"], rows, rtol=1e-6, err_msg="along an axis of any length")
    np.testing.assert_allclose(found["z"][0], np.logaddexp.reduce(300.0 * x[0], -1), rtol=1e-6)


# ---------------------------------------------------------------- names of axes


AXES = {
    "h -> transpose(expert, -3)": "float[expert=3, time, 4]",
    'h -> transpose("expert", "time")': "float[expert=3, time, 4]",
    'h -> transpose("time", "expert")': "float[time, expert=3, 4]",
    "(h, h) -> concat(axis=expert)": "float[time, 6, 4]",
    "(h, x -> new_axis(at=-2)) -> concat(axis=-2)": "float[time, 4, 4]",
    "h -> transpose": "float[time, 4, expert=3]",
    "h -> transpose(axes=[-1, -2])": "float[time, 4, expert=3]",
    "h -> merge": "float[time, 12]",
    'h -> merge(expert, -1, into="row")': "float[time, row=12]",
    'h -> merge -> unmerge([3, 4], into=["expert", ""])': "float[time, expert=3, 4]",
    "x -> new_axis(expert, at=-2)": "float[time, expert=3, 4]",
    "(x -> new_axis(expert, at=-2)) + h": "float[time, expert=3, 4]",
    "x -> new_axis(expert, at=-2) -> expert": "float[time, expert=3, 4]",
    "x -> new_axis": "float[1, time, 4]",
    '(x -> mean(axis="time"), x) -> expand("time")': "float[time, 4]",
    "(x, h) -> expand(expert, at=-2)": "float[time, expert=3, 4]",
    'x -> positions(axis="time")': "float[time]",
    "h -> sort_order(axis=expert)": "float[time, expert=3, 4]",
    "h -> kth_largest(2, axis=expert)": "float[time, 4]",
}


def type_of(text: str) -> str:
    body = f"input x: float[time, 4] pool expert[3] = linear(4) h = x -> expert y = {text} output y"
    graph = modgraph.loads(f"model m() {{ {body} }}").ir
    return str(graph.type_of(graph.outputs["y"]))


@pytest.mark.parametrize("text", AXES)
def test_an_axis_keeps_its_identity(text: str) -> None:
    assert type_of(text) == AXES[text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('h -> transpose("place", "time")', 'unknown axis "place"'),
        ("h -> transpose(-1, -1)", "occurs twice"),
        ("h -> transpose(-1)", "two axes or more"),
        ("h -> transpose(1, 2)", "must be at most -1"),
        ("h -> transpose(h, -1)", "list of strings or whole numbers"),
        ("h -> merge(-1, -2)", "side by side"),
        ("h -> merge(-3, -1)", "-> transpose"),
        ("x -> merge", '"time" has no fixed length'),
        ("x -> unmerge([3, 2])", "3 · 2 is 6, and the axis has 4"),
        ("x -> flatten(3)", "there are 2 axes, and it joins 3"),
        ('x -> unmerge([2, 2], into=["a"])', "have 1 names"),
        ('x -> new_axis(axis="time")', 'the axis "time" would occur twice'),
        ("x -> new_axis(at=-5)", "the first is at=-3"),
        ('(x, h) -> expand("time")', 'the axis "time" would occur twice'),
        ("(x, h) -> expand(expert, at=-4)", "the first is at=-3"),
        ('(x, h) -> expand("place")', 'unknown axis "place"'),
        ('(x -> batch_mean, x) -> expand("time")', "over the batch has no axis along which"),
        ('x -> expand("time")', "it takes two float values"),
        ("x -> kth_largest(5)", "there is no value 5"),
        ("(x, x) -> min", "-> minimum"),
        ("(h, x) -> concat(axis=expert)", 'unknown axis "expert"'),
        ("(h, h -> transpose) -> concat(axis=expert)", 'along the axis "expert", since other axes differ'),
        ("(h, x -> linear(2)) -> concat(axis=-2)", "along the axis -2, since other axes differ"),
        ('(x, x) -> concat(axis="time")', 'along the axis "time", which has no fixed length'),
        ('x -> split(2, axis="time")', '"time" has no fixed length, and split needs one'),
        ("h -> split(2, axis=expert)", "2 parts do not divide an axis of 3"),
        ("x -> split([1, 2])", "1 \\+ 2 is 3"),
        ("x -> split(1)", "2 parts to"),
        ("(x, x -> linear(3)) -> training_or_inference", "outer axes"),
    ],
)
def test_what_does_not_fit_is_reported(text: str, words: str) -> None:
    with pytest.raises(ModgraphError, match=words):
        type_of(text)


def test_a_new_axis_of_a_pool_grows_with_it() -> None:
    body = "input x: float[4] pool expert[3] = linear(4) y = x -> new_axis(expert) -> expert -> mean output y"
    grown = grow(modgraph.loads(f"model m() {{ {body} }}").ir, "expert", 2)
    assert next(str(node.types[0]) for node in grown.nodes_of(OpNode)) == "float[expert=5, 4]"
    longer = modgraph.loads(f"model m() {{ {body.replace('y =', 'grow expert[1] y =')} }}").ir
    assert next(str(node.types[0]) for node in longer.nodes_of(OpNode)) == "float[expert=4, 4]"


def test_parts_may_be_of_unequal_length() -> None:
    model = modgraph.loads(
        "model m() { input x: float[5, 600] a, b, c = x -> split([1, 300, 299]) output a output b output c }"
    ).build()
    x = torch.randn(2, 5, 600)
    found = model(x)
    assert isinstance(found, dict)
    torch.testing.assert_close(torch.cat([*found.values()], dim=-1), x)
    assert [each.shape[-1] for each in found.values()] == [1, 300, 299]


def test_parts_along_another_axis_keep_the_axes_around_it() -> None:
    body = "input x: float[4, 3, 2] pool p[3] = relu h = x -> new_axis(p, at=-1) a, b = h -> split([1, 3], axis=-4)"
    model = modgraph.loads(f"model m() {{ {body} c, d, e = h -> split(3, axis=p) output a output b output e }}").build()
    x = torch.randn(2, 4, 3, 2)
    found = model(x)
    assert isinstance(found, dict)
    torch.testing.assert_close(torch.cat([found["a"], found["b"]], dim=1), x[..., None].expand(-1, -1, -1, -1, 3))
    assert found["e"].shape == (2, 4, 3, 2, 1)


# ---------------------------------------------------------------- training and inference


def test_no_gradient_flows_through_what_stops_it() -> None:
    model = modgraph.loads("model m() { input x: float[2] y = x * (x -> stop_gradient) output y }").build()
    x = torch.tensor([[2.0, -3.0]], requires_grad=True)
    found = model(x)
    assert isinstance(found, Tensor)
    found.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, x.detach())


def test_a_path_is_dropped_for_a_whole_example_or_message() -> None:
    body = "input x: float[5, 6] pool p[2] = drop_path(0.25) a = x -> drop_path(0.25) b = x -> p output a output b"
    model = modgraph.loads(f"model m() {{ {body} }}").build()
    x = torch.ones(400, 5, 6)
    for training in (True, False):
        found = model.train(training)(x)
        assert isinstance(found, dict)
        a, b = found["a"].flatten(1), found["b"].flatten(0, 2)
        for rows in (a, b):
            assert torch.equal(rows, rows[:, :1].expand_as(rows)), "as a whole"
            kept = rows[:, 0] != 0
            torch.testing.assert_close(rows[kept], torch.full_like(rows[kept], 4 / 3 if training else 1.0))
            assert abs(kept.double().mean() - (0.75 if training else 1)) < 0.08


@pytest.mark.parametrize("where", ["", "scan"])
def test_an_export_takes_the_second_and_leaves_out_what_only_the_first_needs(where: str, tmp_path: Path) -> None:
    use = 'y = (v -> linear(3, name="only") -> dropout, v) -> training_or_inference'
    inside = f"scan x as v {{ {use} yield y }} as z" if where else f"v = x {use} z = y"
    model = modgraph.loads(f"model m() {{ input x: float[time, 3] {inside} output z }}").build()
    x = torch.randn(2, 4, 3)
    trained, used = model.train()(x), model.eval()(x)
    assert isinstance(trained, Tensor) and isinstance(used, Tensor)
    torch.testing.assert_close(used, x)
    assert not torch.equal(trained, x)
    inferred = apply_passes(model.graph, INFERENCE)
    assert not list(weights_of(inferred))
    assert not any(isinstance(node, OpNode) for part in inferred.parts() for node in part.graph)
    modgraph.export(model, tmp_path / "m.onnx")
    lengths = {"time_length": np.array([4, 4])} if "time_length" in inferred.input_types else {}
    np.testing.assert_array_equal(Bundle(tmp_path / "m.onnx").run({"x": x.numpy(), **lengths})["z"], x.numpy())


WORDS = "exp matmul lstm unsqueeze topk cumsum argsort clip detach permute expand_dims reshape einsum kthvalue"


@pytest.mark.parametrize("word", f"{WORDS} view amin lt flatten_axes arange abs argmax squeeze std pow".split())
def test_a_word_of_another_framework_is_answered(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    from modgraph.cli import main

    known = main(["explain", word]) == 0
    printed = capsys.readouterr()
    answers = ("it is called", "write, for example", "nearest: ")
    assert known or any(each in printed.err for each in answers), printed.err


def test_a_convolution_keeps_the_size_of_an_image_where_its_window_takes_one_step() -> None:
    text = 'model m() {{ input x: float[2, 5, 6] y = x -> conv(3, kernel=4, padding="same"{}) output y }}'
    assert modgraph.loads(text.format("")).build()(torch.ones(2, 2, 5, 6)).shape == (2, 3, 5, 6)
    with pytest.raises(ModgraphError, match="goes with a step of 1"):
        modgraph.loads(text.format(", stride=2"))


def test_what_is_learned_by_itself_is_the_same_for_every_example() -> None:
    text = """model m() { input x: float[3] weight a: float[2, 3] = ones weight b: float[4, 3] = ones
      both = (a, b) -> contract moved = a + 1 output both output moved }"""
    found = modgraph.loads(text).build().compute({"x": torch.ones(5, 3)}).outputs
    assert torch.equal(found["both"], torch.full((5, 2, 4), 3.0)) and torch.equal(
        found["moved"], torch.full((5, 2, 3), 2.0)
    )


def test_nothing_is_summed_over_an_axis_that_stands_elsewhere_in_the_second_value() -> None:
    body = "input x: float[2, 3] pool p[4] = relu weight w: float[p, 4] = zeros h = x -> linear(p)"
    with pytest.raises(modgraph.ModgraphError, match="another axis of that name"):
        modgraph.loads(f"model m() {{ {body} y = (h, w) -> contract output y }}")
