"""Loops that end by a value, in torch: entries that ended keep what they had, and nothing is computed in vain."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.backends.torch.step_memory import memory_of
from modgraph.inspect.cost import TrainingStep
from modgraph.nn import loop

COUNT = """model m() { input x: float[time, 2] input most: float[time]
  scan 0..6 as n with h: float[time, 2] = x, t: float[time] { h = 2 * h t = t + 1 yield (h, n + 0 * t) }
  until t >= most as y, last
  output y output last }"""
READ = """model m() { input x: float[time, 2]
  scan x as v with h: float[2] { h = h + v yield (h, v) } until (h -> max(axis=-1)) > 3 as total, word
  output total output word }"""
ROUTED = """model m() { input x: float[time, 4] pool p[3] = linear(4) -> tanh router r = linear(k=2, noise=0.0)
  scan 0..5 as n with h: float[time, 4] = x, t: float[time] { h = h + (h -> p by r)
    t = t + (h -> linear(1) -> exp -> sum(axis=-1)) yield h } until t > 1.5 as y
  output y loss importance(r) loss y * y -> mean -> mean(axis=-1) }"""


def randomised(text: str) -> Model:
    model = modgraph.loads(text).build().double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.7, generator=torch.Generator().manual_seed(weight.numel()))
    return model


def test_each_token_ends_by_itself_and_padding_delays_nothing() -> None:
    model = modgraph.loads(COUNT).build()
    x, most = torch.ones(2, 3, 2), torch.tensor([[1.0, 2.0, 9.0], [0.0, 3.0, 99.0]])
    computed = model.compute({"x": x, "most": most, "time_length": torch.tensor([3, 2])}).outputs
    assert computed["y"][0, :, 0].tolist() == [2, 4, 64], "a round too many or too few"
    assert computed["last"][0].tolist() == [0, 1, 5]
    assert computed["y"][1, :2, 0].tolist() == [2, 8]
    assert computed["y"][1, 2, 0] == 2, "padding goes on"


def test_a_sequence_is_read_until_a_word_or_to_the_end_of_its_example() -> None:
    model = modgraph.loads(READ).build()
    x = torch.tensor([[[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]], [[0.0, 1.0], [0.0, 1.0], [5.0, 5.0]], [[9.0, 9.0]] * 3])
    found = model.compute({"x": x, "time_length": torch.tensor([3, 2, 0])}).outputs
    assert found["total"].tolist() == [[4, 0], [0, 2], [0, 0]]
    assert found["word"].tolist() == [[3, 0], [0, 1], [0, 0]]
    empty = model.compute({"x": x[:, :0]}).outputs
    assert not empty["total"].any() and empty["total"].shape == (3, 2)
    assert model.compute({"x": x[:0]}).outputs["total"].shape == (0, 2)


def test_running_to_the_bound_gives_the_same_numbers_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, x = randomised(ROUTED), torch.randn(3, 5, 4, dtype=torch.float64)
    found = []
    for whole in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda whole=whole: whole)
        calls: list[int] = []
        hook = model.get_submodule("y.t.linear").register_forward_hook(
            lambda _, given, __, calls=calls: calls.append(len(given[0]))
        )
        computed = model.compute({"x": x, "time_length": torch.tensor([5, 3, 1])}, routing=True)
        hook.remove()
        gradients = torch.autograd.grad(computed.loss, [*model.parameters()], allow_unused=True)
        found.append((sum(calls), computed, gradients))
    (fewer, early, ours), (rounds, late, theirs) = found
    assert fewer < rounds == 3 * 5, "nothing ends early"
    for name, value in {**early.outputs, **early.routing}.items():
        torch.testing.assert_close(value, {**late.outputs, **late.routing}[name], rtol=0, atol=1e-14)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


def test_records_have_the_rounds_in_front_and_are_zero_where_a_token_has_ended() -> None:
    torch.manual_seed(0)
    model, x = randomised(ROUTED), torch.randn(2, 5, 4, dtype=torch.float64)
    computed = model.compute({"x": x}, routing=True)
    (gates,) = (value for name, value in computed.routing.items() if name.endswith(".gates"))
    assert gates.shape == (2, 5, 5, 3)
    rounds = (gates > 0).any(-1)
    assert rounds[:, 0].all() and not rounds[:, -1].all()
    assert (rounds[:, 1:] <= rounds[:, :-1]).all(), "a token has come back"


def test_an_example_that_has_ended_is_not_computed_so_its_gradient_is_finite() -> None:
    text = """model m() { input x: float[3] weight w: float[3] = ones
      scan 0..4 as n with h: float[3] = x { h = log(h * w) yield h } until (h -> min(axis=-1)) < 0 as y output y }"""
    model = modgraph.loads(text).build()
    x = torch.tensor([[2.0, 0.5, 3.0], [60.0, 70.0, 80.0]])
    y = model.compute({"x": x}).outputs["y"]
    torch.testing.assert_close(y, torch.stack([x[0].log(), x[1].log().log().log().log()]))
    (gradient,) = torch.autograd.grad(y.sum(), [model.get_parameter("w")])
    assert gradient.isfinite().all()


def step(slices: Any, states: Any) -> tuple[list[Tensor], Tensor, list[Tensor]]:
    ((x,), (h,)) = slices, states
    return [h + x], (h + x < 3).to(h.dtype), [h * x, x.sum(-1)]


def test_results_without_the_entries_axes_stay_while_any_entry_goes_on() -> None:
    x = torch.tensor([[1.0, 9.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]).unsqueeze(0)
    final, stacked = loop(step, [x], [torch.zeros(1, 2)], [0])
    assert final.tolist() == [[2, 0]]
    assert stacked.tolist() == [[10, 2, 2, 0]]


@pytest.mark.slow
def test_the_memory_of_training_counts_all_rounds() -> None:
    sizes = [modgraph.loads(ROUTED.replace("0..5", f"0..{most}")).ir for most in (2, 12)]
    small, large = (memory_of(graph, TrainingStep(batch=2), {"time": 6}).activations for graph in sizes)
    assert large > 4 * small, (small, large)


@pytest.mark.slow
def test_torch_compiles_a_loop_as_one_graph_of_all_rounds() -> None:
    torch.manual_seed(0)
    model, x = randomised(ROUTED), torch.randn(2, 3, 4, dtype=torch.float64)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=1e-12)
