"""Slots: equations in numpy, forms against each other, draws, choices that are told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

import modgraph
from modgraph.ir import make_forced_key
from modgraph.nn import DRAW
from tests.nn.by_router import DIM, WIDTH, given_by, lowerings_of, messages_of, model_by, randomised, weights_of
from tests.ordinary_run import some_examples

ROUTE = f"""model m() {{ input x: float[time, {DIM}] pool p[SIZE] = linear({WIDTH})
  router r = ROUTER y = x -> p by r output y }}"""


@some_examples(15)
@given(
    batch=st.integers(1, 3),
    tokens=st.integers(1, 4),
    modules=st.integers(1, 5),
    slots=st.integers(1, 3),
    how=st.sampled_from(['"sum"', '"sum", dedupe=true', '"concat"']),
    seed=st.integers(0, 1000),
)
def test_every_lowering_equals_the_equations(
    batch: int, tokens: int, modules: int, slots: int, how: str, seed: int
) -> None:
    router, found = f"categorical({slots}, {how})", []
    x = torch.randn(batch, tokens, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    for lowering in lowerings_of(modgraph.loads(ROUTE.replace("SIZE", str(modules)).replace("ROUTER", router))):
        model = model_by(router, modules, seed, lowering).eval()
        given = given_by(model, x)
        value, records = given.numpy()
        weights = weights_of(model)
        logits = np.einsum("kmd,bnd->bnkm", weights["weight"], x.numpy()) + weights["bias"]
        picks = np.eye(modules)[logits.argmax(-1)]  # of equal ones argmax takes the first
        counts = picks.sum(-2)
        np.testing.assert_allclose(records["scores"], log_softmax(logits, -1), atol=1e-10)
        np.testing.assert_array_equal(records["selected"], picks)
        np.testing.assert_array_equal(records["gates"], np.minimum(counts, 1) if "dedupe" in how else counts)
        messages = messages_of(model, x).detach().numpy()
        if "concat" in how:
            expected = np.einsum("bnkm,bnmv->bnkv", picks, messages).reshape(batch, tokens, -1)
        else:
            expected = np.einsum("bnm,bnmv->bnv", records["gates"], messages)
        np.testing.assert_allclose(value, expected, atol=1e-10)
        parameters = list(model.parameters())
        found.append(torch.autograd.grad((given.value**2).sum(), parameters, materialize_grads=True))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], atol=1e-10, rtol=0)


def test_of_equally_probable_modules_the_first_is_taken() -> None:
    model = model_by("categorical(2)", 4).eval()
    for name in ("weight", "bias"):
        model.get_parameter(f"r.{name}").data.zero_()
    records = given_by(model, torch.randn(5, 3, DIM).double()).records
    assert (records["selected"].argmax(-1) == 0).all()
    torch.testing.assert_close(records["scores"], torch.full_like(records["scores"], 1 / 4).log())


def test_in_training_modules_are_sampled_with_their_probabilities() -> None:
    torch.manual_seed(0)
    model, draws = model_by("categorical(2)", 3).train(), 40_000
    model.get_parameter("r.weight").data.zero_()
    bias = model.get_parameter("r.bias")
    bias.data = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]).log().double()
    choice = given_by(model, torch.zeros(1, draws, DIM).double()).records["selected"]
    torch.testing.assert_close(choice.mean((0, 1)), bias.exp(), atol=4 / (2 * draws**0.5), rtol=0)


@pytest.mark.parametrize("training", [False, True])
def test_a_forced_choice_is_made_and_the_rest_sampled(training: bool) -> None:
    model = model_by("categorical(2)", 5).train(training)
    choice = torch.tensor([[3, 1], [DRAW, 4], [0, DRAW]]).expand(200, 3, 2)
    batch = {"x": torch.ones(200, 3, DIM).double(), make_forced_key("y.p.selected.draw"): choice}
    torch.manual_seed(0)
    found = model.compute(batch, routing=True).routing["p.selected"].argmax(-1)
    assert (found == choice)[choice != DRAW].all()
    assert len(found[:, 1, 0].unique()) > 1


def test_choices_of_routes_are_forced_in_scans_too() -> None:
    text = """model m() { input xs: float[time, 3] pool p[3] = linear(3) router r = categorical(2)
      a = xs -> last -> p by r
      scan xs as x with h: float[3] { h = h + (x -> p by r) yield h } as states
      output a output states }"""
    model = modgraph.loads(text).build().train()
    xs = torch.randn(4, 5, 3)
    outer, inner = torch.randint(3, (4, 1, 2)), torch.randint(3, (4, 5, 1, 2))
    batch = {"xs": xs, make_forced_key("a.p.selected.draw"): outer, make_forced_key("states.h.p.selected.draw"): inner}
    routing = model.compute(batch, losses=False, routing=True).routing
    assert set(routing) >= {"p.selected", "states.p.selected"}
    torch.testing.assert_close(routing["p.selected"].argmax(-1), outer)
    torch.testing.assert_close(routing["states.p.selected"].argmax(-1), inner)


def test_images_are_messages_and_results_lie_side_by_side_along_channels() -> None:
    text = """model m(combine="sum") { input image: float[3, 6, 6]
      pool p[4] = conv(5, kernel=3, padding=1) -> relu
      router r = categorical(2, combine=combine, controller="conv", channels=7)
      y = image -> p by r output y }"""
    shapes = {
        combine: modgraph.loads(text, combine=combine).build()(torch.randn(2, 3, 6, 6)).shape
        for combine in ("sum", "concat")
    }
    assert shapes == {"sum": (2, 5, 6, 6), "concat": (2, 10, 6, 6)}
    cost = modgraph.loads(text).cost()
    assert cost.nodes["r"].parameters == 7 * 3 * 9 + 7 + 2 * 4 * 7 + 2 * 4
    assert cost.nodes["r"].macs == 7 * 3 * 9 * 36 + 2 * 4 * 7
    assert cost.nodes["p"].active_macs * 2 == cost.nodes["p"].macs


@pytest.mark.parametrize("kernel", [3, 4])
def test_the_image_controller_is_a_convolution_its_mean_and_a_linear_map(kernel: int) -> None:
    text = f"""model m() {{ input x: float[2, 6, 7] pool p[3] = conv(2) -> relu
      router r = categorical(4, controller="conv", channels=4, kernel={kernel}) y = x -> p by r output y }}"""
    model = modgraph.loads(text).build().double().eval()
    randomised(model, 1)
    x, weights = torch.randn(5, 2, 6, 7, dtype=torch.float64), weights_of(model)
    before = (kernel - 1) // 2
    sides = (before, kernel - 1 - before)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), sides, sides))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    maps = np.einsum("bchwij,ocij->bohw", windows, weights["conv.weight"]) + weights["conv.bias"][:, None, None]
    features = np.maximum(maps, 0).mean((2, 3))
    logits = np.einsum("kmf,bf->bkm", weights["weight"], features) + weights["bias"]
    _, records = given_by(model, x).numpy()
    np.testing.assert_allclose(records["scores"][:, 0], log_softmax(logits, -1), atol=1e-12)


@pytest.mark.parametrize("combine", ["sum", "concat"])
def test_the_fixed_choice_takes_the_first_modules_for_every_input(combine: str) -> None:
    text = f"""model m() {{ input x: float[3] pool p[4] = linear(2) router r = fixed(2, "{combine}")
      y = x -> p by r output y }}"""
    model, x = modgraph.loads(text).build(), torch.randn(5, 3)
    first, second = (messages_of(model, x)[:, at] for at in range(2))
    torch.testing.assert_close(model(x), first + second if combine == "sum" else torch.cat((first, second), -1))
    records = given_by(model, x).records
    assert torch.equal(records["selected"], torch.eye(2, 4).expand(5, 1, 2, 4))
    torch.testing.assert_close(records["scores"].exp(), records["selected"])
    assert modgraph.loads(text).cost().nodes["p"].active_macs == 2 * 3 * 2


WRONG = {
    'categorical(2, combine="concat", dedupe=true)': 'combine == "sum" or not dedupe',
    'categorical(controller="conv")': "message_rank\\(p\\) == 3",
    "fixed(9)": "slots of fixed must be at most 4",
    "categorical(0)": "must be at least 1",
    'categorical(combine="add")': 'must be one of "sum", "concat"',
}


@pytest.mark.parametrize("router", WRONG)
def test_an_impossible_choice_is_reported(router: str) -> None:
    text = f"model m() {{ input x: float[3] pool p[4] = linear(2) router r = {router} y = x -> p by r output y }}"
    with pytest.raises(modgraph.ModgraphError, match=WRONG[router]):
        modgraph.loads(text)
