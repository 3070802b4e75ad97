"""Whatever stands in padding, along one axis or several, moves no value and no gradient."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model, run
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph

LENGTHS = {"time": torch.tensor([4, 2, 0]), "chars": torch.tensor([1, 3, 2])}
ENDS = {
    "mean": "z = y -> mean -> mean -> mean(axis=-1) loss z ** 2",
    "sum": 'z = y -> sum(axis="chars") -> sum(axis="time") -> mean(axis=-1) loss z',
    "max": 'z = y -> max(axis="chars") -> max(axis="time") -> mean(axis=-1) loss z',
    "last": 'z = y -> last(axis="chars") -> last(axis="time") -> mean(axis=-1) loss z',
    "first": 'z = y -> select(0, axis="chars") -> select(0, axis="time") -> mean(axis=-1) loss z',
    "softmax": 'z = (y -> softmax(axis="chars")) * y -> sum -> mean -> mean(axis=-1) loss z',
    "log_softmax": 'z = y -> log_softmax(axis="time") -> sum -> mean -> mean(axis=-1) loss z',
    "contract": 'z = (y, y) -> contract(axis="chars") -> mean(axis="time") -> mean(axis=-1) loss z -> mean(axis=-1)',
    "attention": "z = y -> attention(1) -> mean -> mean -> mean(axis=-1) loss z",
    "cross_entropy": "target t: class[time, chars, 4] loss cross_entropy(y, t)",
    "ignored": "target t: class[time, chars, 4] loss cross_entropy(y, t, ignore=1)",
    "summed": 'target t: class[time, chars, 4] loss cross_entropy(y, t, reduce="sum")',
    "gaussian": "target f: float[time, chars, 4] loss gaussian(y, f, variance=0.5)",
    "mse": "target f: float[time, chars, 4] loss mse(y, f)",
    "entropy": "loss entropy(y)",
    "importance": 'loss importance(y -> relu, over="example")',
    "importance over the batch": "loss importance(y -> relu)",
    "scan": "scan x as v with h: float[4] { h = h + (v -> mean -> linear(4)) yield h } as s "
    "loss s -> mean -> mean(axis=-1)",
}


def model_of(end: str) -> Model:
    text = f"model m() {{ input x: float[time, chars, 3] y = x -> linear(4) {end} output y }}"
    torch.manual_seed(0)
    return modgraph.loads(text).build().double().train()


def batch_of(graph: Graph, padding: float) -> dict[str, Tensor]:
    """Three examples, of which the axes hold padding of a certain value."""
    generator = torch.Generator().manual_seed(1)
    found: dict[str, Tensor] = {}
    for name, type_ in {**graph.input_types, **graph.target_types}.items():
        if type_.dtype == "length":
            found[name] = LENGTHS[type_.of]
            continue
        shape = (3, *({"time": 4, "chars": 3}.get(str(each), each) for each in type_.dimensions))
        if type_.dtype == "class":
            found[name] = torch.randint(4, shape, generator=generator)  # type: ignore[arg-type]
        else:
            values = torch.randn(shape, generator=generator, dtype=torch.float64)  # type: ignore[arg-type]
            found[name] = torch.where(unpadded(values), values, padding)
    return found


def unpadded(x: Tensor) -> Tensor:
    time = torch.arange(4) < LENGTHS["time"][:, None]
    chars = torch.arange(3) < LENGTHS["chars"][:, None]
    return (time[:, :, None] & chars[:, None, :])[..., *[None] * (x.dim() - 3)]


def learnt(end: str, padding: float) -> tuple[Tensor, list[Any]]:
    model = model_of(end)
    loss = model.compute(batch_of(model.graph, padding)).loss
    loss.backward()
    return loss.detach(), [weight.grad for weight in model.parameters()]


@pytest.mark.some(27)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("padding", [float("nan"), float("inf"), 7.0])
def test_padding_moves_neither_loss_nor_gradients(end: str, padding: float) -> None:
    expected, found = learnt(ENDS[end], 0.0), learnt(ENDS[end], padding)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-12)
    assert torch.isfinite(found[0])
    assert any(gradient.abs().sum() > 0 for gradient in found[1] if gradient is not None)


def test_a_quotient_over_padding_is_the_mean_without_padding() -> None:
    model = modgraph.loads("model m() { input x: float[time, 2] y = 1 / x -> mean output y }").build()
    x, length = torch.tensor([[[2.0, 4.0], [0.0, 0.0]]]), torch.tensor([1])
    for training in (True, False):
        torch.testing.assert_close(model.train(training)(x, time_length=length), torch.tensor([[0.5, 0.25]]))


def test_a_gradient_through_a_quotient_over_padding_is_finite() -> None:
    text = """model m() { input x: float[time, 2] h = x -> linear(2, bias=false)
      y = 1 / h -> mean loss y -> mean(axis=-1) output y }"""
    model = modgraph.loads(text).build().train()
    x = torch.cat((torch.ones(1, 1, 2), torch.zeros(1, 3, 2)), dim=1)
    model.compute({"x": x, "time_length": torch.tensor([1])}).loss.backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters() if weight.grad is not None)


def test_frames_of_padding_count_for_nothing_in_batch_norm() -> None:
    text = "model m() { input x: float[time, 2, 3, 3] y = x -> batch_norm output y }"
    x = torch.randn(2, 3, 2, 3, 3)
    x[1, 1:] = torch.nan
    model = modgraph.loads(text).build().train()
    found = model(x, time_length=torch.tensor([3, 1]))
    separate = torch.nn.BatchNorm2d(2)
    expected = separate(torch.cat((x[0], x[1, :1])))
    torch.testing.assert_close(found[0], expected[:3])  # type: ignore[index]
    torch.testing.assert_close(found[1, 0], expected[3])  # type: ignore[index, call-overload]
    torch.testing.assert_close(model.state_dict()["y.batch_norm.running_mean"], separate.running_mean)


OVER_BATCH = {
    "batch_mean": "m = v -> batch_mean([]) y = m + v",
    "batch_variance": "m = v -> batch_variance([]) y = m * v",
    "batch_norm": "y = v -> unmerge([1, 2, 3]) -> batch_norm -> flatten",
    "within_capacity": "y = (v, v -> top_k(2)) -> within_capacity(0.5)",
}


@pytest.mark.parametrize("name", OVER_BATCH)
def test_an_example_that_has_ended_counts_for_nothing_at_a_step_of_a_scan(name: str) -> None:
    text = f"model m() {{ input x: float[time, 6] scan x as v {{ {OVER_BATCH[name]} yield y }} as s output s }}"
    model, x, length = modgraph.loads(text).build().train(), torch.randn(4, 5, 6), torch.tensor([5, 3, 0, 1])
    found = model(x, time_length=length)
    for time in range(5):
        there = length > time
        separate = modgraph.loads(text).build().train()(x[there, time : time + 1])
        torch.testing.assert_close(found[there, time : time + 1], separate)  # type: ignore[index]


POOL_OF_NORMS = (
    'model m() { input x: float[%s, 3, 4, 4] pool p[2] = conv(3, padding="same") -> batch_norm %s output y }'
)


@pytest.mark.parametrize("use", ["x -> p", "x -> p by (x -> flatten(3) -> linear(p) -> softmax)"])
def test_padding_is_no_message_to_modules_that_read_all_of_theirs(use: str) -> None:
    modgraph.loads(POOL_OF_NORMS % (5, f"y = {use}"))
    with pytest.raises(ModgraphError, match='depend on all of their messages, also on padding of "time"'):
        modgraph.loads(POOL_OF_NORMS % ("time", f"y = {use}"))


def test_modules_that_read_all_of_their_messages_stand_in_no_scan_whose_examples_end() -> None:
    text = """model m() { input x: float[%s, 3, 4, 4] pool p[2] = batch_norm
      scan x as v { yield v -> p by (v -> flatten -> linear(p) -> top_k(1)) } as s output s }"""
    modgraph.loads(text % 5)
    with pytest.raises(ModgraphError, match="also of examples that have ended"):
        modgraph.loads(text % "time")


def test_modules_that_read_all_of_their_messages_get_only_those_that_chose_them() -> None:
    program = modgraph.loads(POOL_OF_NORMS % (5, "y = x -> p by (x -> flatten(3) -> linear(p) -> top_k(1))"))
    x, found = torch.randn(4, 5, 3, 4, 4), list[Tensor]()
    for lowering in ("grouped", "per_module", "masked", "message_passing"):
        model = program.build(seed=1, lowering=lowering).train()
        found.append(torch.cat([model(x).flatten(), *(each.flatten() for each in model.state_dict().values())]))
    for each in found[1:]:
        torch.testing.assert_close(each, found[0])


def test_an_input_of_the_name_of_a_length_is_none() -> None:
    text = """model m() { input x: float[time, 4] input time_length: float[3]
      y = (x -> mean -> linear(3)) + time_length output y }"""
    model = modgraph.loads(text).build().eval()
    assert model.graph.length_inputs == {"time": "time_length_"}
    x, given = torch.randn(2, 5, 4), torch.randn(2, 3)
    short = model(x[:, :2], given)
    torch.testing.assert_close(model(x, given, time_length_=torch.tensor([2, 2])), short)


def test_a_target_of_the_name_of_a_length_is_none() -> None:
    text = """model m() { input x: float[time, 4] target time_length: class[9]
      y = x -> mean -> linear(9) loss cross_entropy(y, time_length) output y }"""
    model = modgraph.loads(text).build().eval()
    x = torch.randn(2, 5, 4)
    losses = [model.compute({"x": x, "time_length": torch.tensor(label)}) for label in ([1, 8], [8, 1])]
    torch.testing.assert_close(losses[0].outputs["y"], losses[1].outputs["y"])


@pytest.mark.parametrize("end", ENDS)
def test_a_batch_without_lengths_is_that_of_full_examples_without_masks(end: str) -> None:
    model = model_of(ENDS[end])
    lengths = {"time_length": torch.full((3,), 4), "chars_length": torch.full((3,), 3)}
    full = batch_of(model.graph, 0.0) | lengths
    with patch.object(run, "valid_along", wraps=run.valid_along) as make_mask:
        found = model.compute({name: each for name, each in full.items() if name not in lengths}).loss
        assert all(call.args[1] == {} for call in make_mask.call_args_list), "a mask of absent lengths is made"
    torch.testing.assert_close(found, model.compute(full).loss, atol=1e-12, rtol=1e-12)
