"""Scans in torch: an independent GRU with a routed candidate, padding, states, sharing, and the forms of routes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.ir import weights_of
from tests.examples import GRU, TWO_SCANS
from tests.ordinary_run import some_examples

Array = NDArray[Any]


def randomised(program: modgraph.Program, seed: int = 0, **options: Any) -> Model:
    model = program.build(**options).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) * 0.7)
    return model


def words_of(batch: int, time: int, seed: int = 1) -> Tensor:
    return torch.randint(20, (batch, time), generator=torch.Generator().manual_seed(seed))


def sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def gru_in_numpy(weights: dict[str, Array], words: Array, lengths: list[int], k: int) -> tuple[Array, Array]:
    """States [B, T, H] and gates [B, T, M] of the equations, one example and step after another."""
    hidden, modules = weights["transition.0.linear.weight"].shape[0], weights["controller.weight"].shape[0]
    states, gates = np.zeros((*words.shape, hidden)), np.zeros((*words.shape, modules))
    for example, length in enumerate(lengths):
        h = np.zeros(hidden)
        for time in range(length):
            x = weights["states.embedding.weight"][words[example, time]]
            both = np.concatenate((x, h))
            z, r = np.split(sigmoid(weights["states.z_r.linear.weight"] @ both + weights["states.z_r.linear.bias"]), 2)
            u = np.concatenate((x, r * h))
            logits = weights["controller.weight"] @ u
            choice = np.argsort(-logits, kind="stable")[:k]
            gate = np.exp(logits[choice] - logits.max())
            gate /= gate.sum()
            n = np.zeros(hidden)
            for g, j in zip(gate, choice, strict=True):
                n += g * (weights[f"transition.{j}.linear.weight"] @ u + weights[f"transition.{j}.linear.bias"])
            h = (1 - z) * h + z * np.tanh(n)
            states[example, time], gates[example, time, choice] = h, gate
    return states, gates


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("lowering", [None, "gathered", "masked", "message_passing"])
def test_a_gru_with_a_routed_candidate_is_that_of_the_equations(k: int, lowering: str | None) -> None:
    model = randomised(modgraph.loads(GRU, k=k), lowering=lowering)
    words, lengths = words_of(4, 7), [7, 3, 0, 1]
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    states, gates = gru_in_numpy(weights, words.numpy(), lengths, k)
    batch = {"words": words, "time_length": torch.tensor(lengths), "next": words}
    computed = model.compute(batch, routing=True)
    logits = states @ weights["logits.linear.weight"].T + weights["logits.linear.bias"]
    np.testing.assert_allclose(computed.outputs["logits"].detach().numpy(), logits, atol=1e-12)
    found = computed.routing["states.transition.gates"].detach().numpy()
    np.testing.assert_allclose(found[:, :, 0], gates, atol=1e-12)
    used = gates.sum((0, 1))
    np.testing.assert_allclose(
        computed.losses["loss.importance"].item(), 0.1 * used.var(ddof=1) / used.mean() ** 2, atol=1e-12
    )


@some_examples(25)
@given(
    time=st.integers(1, 6),
    more=st.integers(0, 4),
    cut=st.integers(0, 6),
    k=st.integers(1, 3),
    lowering=st.sampled_from([None, "gathered", "masked", "grouped"]),
    fill=st.integers(0, 19),
)
def test_an_example_does_not_depend_on_its_padding(
    time: int, more: int, cut: int, k: int, lowering: str | None, fill: int
) -> None:
    assume(k < 3 or lowering != "gathered")  # which is not offered where every module runs
    model = randomised(modgraph.loads(GRU, k=k), seed=k, lowering=lowering)
    words, length = words_of(3, time), torch.tensor([time, min(cut, time), 0])
    padded = torch.cat((words, torch.full((3, more), fill)), dim=1)
    batches = [{"words": each, "next": each, "time_length": length} for each in (words, padded)]
    short, long = (model.compute(batch, routing=True) for batch in batches)
    for name, loss in short.losses.items():
        torch.testing.assert_close(long.losses[name], loss, atol=1e-10, rtol=0)
    for name, record in short.routing.items():
        assert not long.routing[name][:, time:].any()
        torch.testing.assert_close(long.routing[name][:, :time], record, atol=1e-10, rtol=0)
    torch.testing.assert_close(long.outputs["logits"][:, :time], short.outputs["logits"], atol=1e-10, rtol=0)
    for name, gradient in gradients(model, short.loss).items():
        torch.testing.assert_close(gradients(model, long.loss)[name], gradient, atol=1e-10, rtol=0)


def gradients(model: Model, loss: Tensor) -> dict[str, Tensor]:
    names = [name for name, _ in model.named_parameters()]
    found = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True, allow_unused=True)
    return {name: torch.zeros(()) if each is None else each for name, each in zip(names, found, strict=True)}


def test_a_whole_model_of_scans_does_not_depend_on_padding_or_company() -> None:
    model = randomised(modgraph.loads(TWO_SCANS))
    generator = torch.Generator().manual_seed(0)
    frames = torch.randn(3, 6, 3, generator=generator, dtype=torch.float64)
    context = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    length = torch.tensor([6, 2, 4])
    together = model(frames, context, time_length=length)
    assert isinstance(together, dict)
    for at, steps in enumerate(length.tolist()):
        single = model(frames[at : at + 1, :steps], context[at : at + 1])
        assert isinstance(single, dict)
        for name in ("final", "mean_product"):
            torch.testing.assert_close(together[name][at], single[name][0], atol=1e-10, rtol=0)
        torch.testing.assert_close(together["final"][at], single["states"][0, -1], atol=1e-10, rtol=0)
        assert not together["states"][at, steps:].any()


def test_gathered_masked_and_per_module_give_the_gradients_of_message_passing() -> None:
    words = words_of(3, 5)
    found = []
    for lowering in ("message_passing", "gathered", "masked", "per_module", "grouped"):
        model = randomised(modgraph.loads(GRU, k=2), lowering=lowering)
        loss = model.compute({"words": words, "next": words, "time_length": torch.tensor([5, 2, 4])}).loss
        found.append(gradients(model, loss))
    for other in found[1:]:
        for name, gradient in found[0].items():
            torch.testing.assert_close(other[name], gradient, atol=1e-10, rtol=0)
    assert all(found[0][f"transition.{j}.linear.weight"].any() for j in range(3))


def test_a_state_begins_where_the_spec_says_and_is_kept_past_the_end() -> None:
    text = """model m() { input x: float[time, 2] input start: float[2]
      scan x as v with h: float[2] = start, count: float {
        h = h + v  count = count + 1  yield h  yield count
      } as sums, counts
      last = sums -> last  steps = counts -> last(axis=-1)
      output sums output last output steps }"""
    model = modgraph.loads(text).build()
    x, start = torch.arange(12.0).reshape(2, 3, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    found: Any = model(x, start, time_length=torch.tensor([3, 1]))
    expected = start[:, None] + x.cumsum(1)
    torch.testing.assert_close(found["sums"][0], expected[0])
    torch.testing.assert_close(found["sums"][1], torch.cat((expected[1, :1], torch.zeros(2, 2))))
    torch.testing.assert_close(found["last"], torch.stack((expected[0, 2], expected[1, 0])))
    assert found["steps"].tolist() == [3, 1]


def test_a_fixed_axis_and_a_body_without_states() -> None:
    text = "model m() { input x: float[3, 4] scan x as v { yield v -> relu } as y output y }"
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(modgraph.loads(text).build()(x), x.relu())


def test_a_sequence_without_steps_gives_results_without_steps() -> None:
    text = """model m() { input x: float[time, 4]
      scan x as v with h: float[4] { h = h + v yield h } as y output y }"""
    found: Any = modgraph.loads(text).build()(torch.randn(2, 0, 4))
    assert found.shape == (2, 0, 4)


def test_what_a_scan_shares_with_its_surroundings_is_one_set_of_weights() -> None:
    text = """model m() { input x: float[time, 4]
      module enc = linear(4) pool p[2] = linear(4) router r = noisy_top_k(1)
      y = x -> enc -> p by r
      scan y as v with h: float[4] { h = (v + h) -> enc -> p by r yield h } as s
      z = s -> last -> p -> mean
      output z loss importance(r) }"""
    program = modgraph.loads(text)
    model = randomised(program)
    assert set(model.state_dict()) == {
        *(f"{owner}.linear.{name}" for owner in ("enc", "p.0", "p.1") for name in ("weight", "bias")),
        "r.weight",
        "r.noise_weight",
    }
    assert program.cost().parameters == sum(p.numel() for p in model.parameters()) == 3 * 20 + 16
    assert len(program.ir.inputs("loss.importance.importance")) == 2
    inner, outer = model.graph["s"], model.graph
    assert inner.region.graph["p"] == outer["p"]  # type: ignore[attr-defined]


def test_every_step_has_the_same_weights_and_the_model_copies() -> None:
    program = modgraph.loads(TWO_SCANS)
    model = program.build().eval()
    assert {weight.name for weight in weights_of(program.ir)} == set(model.state_dict())
    twin = copy.deepcopy(model)
    frames, context = torch.randn(2, 5, 3), torch.randn(2, 4)
    before: Any = model(frames, context)
    with torch.no_grad():
        for weight in twin.parameters():
            weight.add_(0.3)
    after: Any = model(frames, context)
    moved: Any = twin(frames, context)
    assert torch.equal(before["final"], after["final"])
    assert not torch.allclose(moved["final"], before["final"])


def test_independent_lstms_as_a_pool_that_deals_its_states_row_by_row() -> None:
    text = """model m(k=3, hidden=5) { input x: float[time, 2]
      pool wx[k] = linear(4 * hidden) pool wh[wx] = linear(4 * hidden, bias=false)
      scan x as v with h: float[wh, hidden], c: float[wh, hidden] {
        i, f, g, o = (v -> wx) + (h -> wh) -> split(4)
        c = (f -> sigmoid) * c + (i -> sigmoid) * (g -> tanh)
        h = (o -> sigmoid) * (c -> tanh)
        yield h
      } as u
      output u }"""
    model = randomised(modgraph.loads(text))
    x = torch.randn(2, 4, 2, dtype=torch.float64)
    ours: Any = model(x)
    assert ours.shape == (2, 4, 3, 5)
    for j in range(3):
        lstm = torch.nn.LSTM(2, 5, batch_first=True).double()
        weights = model.state_dict()
        lstm.load_state_dict(
            {
                "weight_ih_l0": weights[f"wx.{j}.linear.weight"],
                "weight_hh_l0": weights[f"wh.{j}.linear.weight"],
                "bias_ih_l0": weights[f"wx.{j}.linear.bias"],
                "bias_hh_l0": torch.zeros(20),
            }
        )
        torch.testing.assert_close(ours[:, :, j], lstm(x)[0], atol=1e-10, rtol=0)


def test_the_report_says_how_a_route_in_a_scan_is_computed() -> None:
    from modgraph.backends.report import compile_report

    program = modgraph.loads(TWO_SCANS)
    lines = compile_report(program.ir, program.build()).splitlines()
    assert sum(": grouped; " in line for line in lines) == 2
    assert not any(" when exported: " in line for line in lines)
    assert sum(": gathered; " in line for line in lines) == 2
