"""Noise, draws and choices: against numpy, a router that draws, and what a definition says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from modgraph.nn import Draw, Shard, WithinCapacity, use_shard
from modgraph.passes import INFERENCE, apply_passes, optimise
from tests.nn.gmoe_in_numpy import dropped
from tests.ordinary_run import some_examples

LENGTH = torch.tensor([5, 3, 0])
UNREAL = torch.arange(5)[:, None] >= LENGTH[:, None, None]
HEAD = "model m() { input x: float[time, 6] pool p[4] = linear(3) -> tanh scores = x -> linear(p, bias=false)"
IN_OPS = {
    "noise": """
  deviation = (x -> linear(p, bias=false) -> softplus) + 0.01
  noisy = scores + ((scores, deviation) -> normal_noise)
  choice = noisy -> top_k(2)
  others = where(choice, noisy -> kth_largest(3), noisy -> kth_largest(2))
  w = (((scores - others) / deviation / sqrt(2) -> erf) + 1) * 0.5
  y = x -> p by ((noisy, choice) -> masked_softmax)""",
    "capacity": """
  noisy = scores + (scores -> normal_noise(0.5))
  top = noisy -> top_k(2)
  choice = (noisy -> softmax, top) -> within_capacity(0.75, k=2)
  w = scores -> softmax
  y = x -> p by (((noisy, top) -> masked_softmax) * choice)""",
}


@pytest.mark.parametrize("text", IN_OPS.values(), ids=IN_OPS)
def test_without_noise_and_capacity_an_export_has_neither_nor_what_only_these_need(text: str) -> None:
    lean = str(apply_passes(modgraph.loads(f"{HEAD} {text} output y }}").ir, INFERENCE))
    assert "noise" not in lean and "add" not in lean and "softplus" not in lean and "capacity" not in lean


def test_what_only_noise_makes_is_zero_in_inference() -> None:
    text = """model m() { input x: float[3, 4] wide = (x -> mean) - 2 * (x -> normal_noise(1.0)) * x
      y = x -> gumbel_noise output wide output y }"""
    program = modgraph.loads(text)
    x = torch.randn(2, 3, 4)
    for model in (program.build().eval(), Model(program.ir, optimise(program.ir, INFERENCE)).train()):
        wide, y = model.compute({"x": x}).outputs.values()
        torch.testing.assert_close(wide, x.mean(-2, keepdim=True).expand_as(x), rtol=0, atol=0)
        assert not y.any()


def test_noise_of_no_deviation_draws_nothing() -> None:
    model = modgraph.loads("model m() { input x: float[3] y = x + (x -> normal_noise(0.0)) output y }").build()
    state = torch.get_rng_state()
    x = torch.randn(2, 3)
    before = torch.get_rng_state()
    assert torch.equal(model.train().compute({"x": x}).outputs["y"], x)
    assert torch.equal(torch.get_rng_state(), before) and not torch.equal(state, before)


def test_an_example_has_its_noise_whichever_process_has_it() -> None:
    text = """model m() { input x: float[3] n = x -> normal_noise(0.5) g = x -> gumbel_noise d = x -> draw
      output n output g output d }"""
    model, x = modgraph.loads(text).build().train(), torch.randn(5, 3)
    torch.manual_seed(2)
    whole = model.compute({"x": x}).outputs
    for start, stop in ((0, 2), (2, 5)):
        torch.manual_seed(2)
        with use_shard(Shard(start, stop, 5, lambda x: x, torch.Generator())):
            part = model.compute({"x": x[start:stop]}).outputs
        for name, value in part.items():
            assert torch.equal(value, whole[name][start:stop])


# ---------------------------------------------------------------- draws


def test_a_draw_takes_a_place_as_often_as_it_is_probable() -> None:
    p = torch.tensor([0.1, 0.6, 0.3])
    torch.manual_seed(0)
    sample = Draw(axis=-2).train()(p.log()[:, None].expand(4000, 3, 5))
    assert torch.equal(sample.sum(-2), torch.ones(4000, 5))
    torch.testing.assert_close(sample.mean((0, 2)), p, atol=0.02, rtol=0)


@pytest.mark.parametrize("training", [True, False])
def test_padding_is_never_sampled_and_a_choice_forced_on_it_does_not_matter(training: bool) -> None:
    text = """model m() { input s: float[time, 4] input t: float[time] input u: float[4]
      d = (s, t) -> draw along = (s, u) -> draw(axis="time") output d output along }"""
    model, found = modgraph.loads(text).build().train(training), []
    s = torch.randn(3, 5, 4)
    for padding in (0.0, torch.nan, torch.inf):
        torch.manual_seed(1)
        given = {
            "s": s.masked_fill(UNREAL, padding),
            "t": torch.full((3, 5), -1.0).masked_fill(UNREAL[..., 0], padding),
        }
        found.append(model.compute({**given, "u": torch.full((3, 4), -1.0), "time_length": LENGTH}).outputs)
    for outputs in found:
        assert torch.equal(outputs["d"].sum(-1), 1.0 - UNREAL[..., 0].float())
        assert torch.equal(outputs["along"].sum(-2), (LENGTH > 0).float()[:, None].expand(3, 4))
        for name, value in outputs.items():
            assert torch.equal(value, found[0][name]) and not value.masked_select(UNREAL).any()


def test_inference_takes_the_most_probable_whatever_an_operand_says() -> None:
    model = modgraph.loads("model m() { input x: float[5, 4] input t: float[5] y = (x, t) -> draw output y }").build()
    x, taken = torch.randn(50, 5, 4), torch.randint(-1, 4, (50, 5)).float()
    torch.testing.assert_close(model.eval()(x, taken).argmax(-1), x.argmax(-1))
    is_forced = taken >= 0
    assert torch.equal(model.train()(x, taken).argmax(-1)[is_forced], taken.long()[is_forced])


def test_an_export_draws_nothing_and_takes_no_word_for_it() -> None:
    program = modgraph.loads("model m() { input s: float[2, 4] input t: float[2] y = (s, t) -> draw output y }")
    model = Model(program.ir, optimise(program.ir, INFERENCE))
    s = torch.tensor([[[0.0, 2, 2, 1], [3, 3, 3, 3]]])
    found = model.compute({"s": s, "t": torch.tensor([[3.0, 3.0]])}).outputs["y"]
    assert found.argmax(-1).tolist() == [[1, 0]]


# ---------------------------------------------------------------- capacity


@some_examples(60)
@given(
    tokens=st.integers(1, 9),
    k=st.integers(1, 3),
    share=st.sampled_from([0.0, 0.5, 1.0, 1.5]),
    priority=st.sampled_from(["score", "first_choice"]),
    cut=st.integers(0, 9),
    seed=st.integers(0, 99),
)
def test_beyond_the_capacity_what_the_equations_drop_is_dropped_however_many_processes_there_are(
    tokens: int, k: int, share: float, priority: str, cut: int, seed: int
) -> None:
    scores = torch.from_numpy(np.random.default_rng(seed).integers(0, 4, (tokens, 3)).astype(float))
    choice = (scores.argsort(descending=True, stable=True).argsort() < k).double()
    module = WithinCapacity(-1, share, k, priority).train()
    expected = choice.clone()
    for token, expert in dropped([*scores.numpy()], k, k * int(share * -(-tokens // 3)), priority):
        expected[token, expert] = 0
    assert torch.equal(module(scores, choice), expected)
    for start, stop in ((0, min(cut, tokens)), (min(cut, tokens), tokens)):
        parts = iter((scores, choice.bool()))

        def add(part: Tensor, parts: object = parts) -> Tensor:
            whole: Tensor = next(parts).to(part.dtype)  # type: ignore[call-overload]
            assert torch.equal(part[start:stop], whole[start:stop])  # noqa: B023
            return whole

        with use_shard(Shard(start, stop, tokens, add, torch.Generator())):
            assert torch.equal(module(scores[start:stop], choice[start:stop]), expected[start:stop])


def test_capacity_along_another_axis_and_none_in_inference() -> None:
    scores, choice = torch.rand(2, 3, 5), (torch.rand(2, 3, 5) > 0.5).float()
    along, last = (WithinCapacity(axis, 0.5, 1, "score").train() for axis in (-2, -1))
    assert torch.equal(along(scores, choice), last(scores.mT, choice.mT).mT)
    assert torch.equal(along.eval()(scores, choice), choice)


# ---------------------------------------------------------------- thresholds, slots, straight-through gates


def test_a_choice_is_what_exceeds_a_threshold_and_slots_take_the_first_places() -> None:
    text = """model m() { input x: float[time, 4] a = x -> above(0.5) f = x -> first_places(3, axis="slot")
      output a output f }"""
    x = torch.randn(3, 5, 4)
    found = modgraph.loads(text).build().compute({"x": x.masked_fill(UNREAL, torch.inf), "time_length": LENGTH}).outputs
    assert torch.equal(found["a"], ((x > 0.5) & ~UNREAL).float())
    assert torch.equal(found["f"], torch.eye(3, 4).expand(3, 5, 3, 4))
    with pytest.raises(ModgraphError, match="3 places for slots=4"):
        modgraph.loads("model m() { input x: float[2, 3] y = x -> first_places(4) output y }")


@pytest.mark.parametrize("axis", ["time", "-1"])
def test_every_choice_gets_a_slot_and_finds_its_place_again(axis: str) -> None:
    written = axis if axis == "-1" else f'"{axis}"'
    text = f"""model m() {{ input x: float[time, 4] c = x -> top_k(2, axis={written})
      place = c -> dispatch(3, axis={written}, into="slot") output c output place }}"""
    x = torch.randn(3, 5, 4)
    found = modgraph.loads(text).build().compute({"x": x.masked_fill(UNREAL, torch.nan), "time_length": LENGTH}).outputs
    along = 1 if axis == "time" else 2
    picks, place = found["c"].movedim(along, -1), found["place"].movedim(along + 1, -1).movedim(along, -2)
    assert axis == "-1" or picks.sum() == sum(min(int(each), 2) * 4 for each in LENGTH)
    for one, slots in zip(picks.flatten(0, -2), place.flatten(0, -3), strict=True):
        expected = torch.zeros(3, len(one))
        for slot, at in enumerate(one.nonzero()[:, 0]):
            expected[slot, at] = 1
        assert torch.equal(slots, expected)


@pytest.mark.parametrize("batch", [1, 2])
def test_single_tokens_go_through_a_block_and_come_back(batch: int) -> None:
    """Mixture of depths (Raposo et al., 2024): the others pass by."""
    text = """model m() { input x: float[time, 4]
      place = x -> max(axis=-1) -> top_k(2) -> dispatch(2, into="slot") taken = x by place over time
      y = (taken -> cumulative_sum(axis="slot")) by place over slot output y output taken }"""
    x = torch.randn(batch, 5, 4)
    found = modgraph.loads(text).build().compute({"x": x}).outputs
    for one, y, taken in zip(x, *found.values(), strict=True):
        first, second = sorted(one.amax(-1).topk(2).indices.tolist())
        expected = torch.zeros(5, 4)
        expected[first], expected[second] = one[first], one[first] + one[second]
        torch.testing.assert_close(y, expected)
        torch.testing.assert_close(taken, one[[first, second]])


GATES = {
    "categorical": ("noisy / 0.5 -> softmax", "noisy -> top_k"),
    "binary": ("noisy / 0.5 -> sigmoid", "noisy -> above"),
}


@pytest.mark.parametrize("kind", GATES)
def test_a_straight_through_gate_is_hard_and_learns_as_the_soft_one(kind: str) -> None:
    soft, hard = GATES[kind]
    text = f"""model m() {{ input s: float[2] noisy = s + (s -> gumbel_noise)
      soft = {soft} hard = {hard} y = (soft, hard) -> straight_through output y output soft output hard }}"""
    model, s = modgraph.loads(text).build().train(), torch.randn(50, 2, requires_grad=True)
    y, soft_value, hard_value = model.compute({"s": s}).outputs.values()
    assert torch.equal(y, hard_value) and 0 < y.mean() < 1
    upstream = torch.randn_like(y)
    ours, theirs = (torch.autograd.grad(value, s, upstream, retain_graph=True)[0] for value in (y, soft_value))
    assert torch.equal(ours, theirs) and ours.any()
    assert torch.equal(model.eval().compute({"s": s}).outputs["y"], model.compute({"s": s}).outputs["hard"])


MISTAKES = {
    "x -> normal_noise": "a number or a second value",
    "(x, t) -> normal_noise": "are of one shape",
    "(x, x) -> draw": "the number of a place for each",
    "x -> normal_noise(-1)": "at least 0",
    "(x, x) -> within_capacity": "share",
}


@pytest.mark.parametrize("value", MISTAKES)
def test_mistakes_are_reported(value: str) -> None:
    with pytest.raises(ModgraphError, match=MISTAKES[value]):
        modgraph.loads(f"model m() {{ input x: float[5, 6] input t: float[5] y = {value} output y }}")
