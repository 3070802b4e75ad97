"""Slots: equations in numpy, forms against each other, draws, choices that are given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from torch import nn

import modgraph
from modgraph.nn import (
    DRAW,
    Categorical,
    Linear,
    Pool,
    SelectedGathered,
    SelectedGrouped,
    SelectedMasked,
    SelectedPerModule,
    SlotsGathered,
    SlotsGrouped,
    SlotsMasked,
    SlotsPerModule,
    choosing,
)
from modgraph.nn.message_passing import SelectedMessagePassing, SlotsMessagePassing
from modgraph.nn.padding import valid

SUM = (SelectedMessagePassing, SelectedGrouped, SelectedPerModule, SelectedGathered, SelectedMasked)
CONCAT = (SlotsMessagePassing, SlotsGrouped, SlotsPerModule, SlotsGathered, SlotsMasked)


def randomised(module: nn.Module, seed: int) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.data.normal_(0, 0.7, generator=generator)
    return module.double()


def expected(tokens: np.ndarray, pool: Pool, choice: np.ndarray, combine: str, dedupe: bool) -> np.ndarray:
    """Results of tokens [S, D] whose slots hold the modules `choice` [S, K], one after another."""
    weights = [(pool.expert(j).weight.detach().numpy(), pool.expert(j).bias.detach().numpy()) for j in range(len(pool))]
    rows = []
    for token, modules in zip(tokens, choice, strict=True):
        taken = sorted(set(modules)) if dedupe else modules
        parts = [weights[j][0] @ token + weights[j][1] for j in taken]
        rows.append(np.concatenate(parts) if combine == "concat" else np.sum(parts, axis=0))
    return np.array(rows)


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(0, 3),
    tokens=st.integers(1, 4),
    modules=st.integers(1, 5),
    slots=st.integers(1, 3),
    combine=st.sampled_from(["sum", "concat"]),
    dedupe=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_form_equals_the_equations(
    batch: int, tokens: int, modules: int, slots: int, combine: str, dedupe: bool, seed: int
) -> None:
    dedupe = dedupe and combine == "sum"
    pool = Pool([Linear(3, 2) for _ in range(modules)])
    randomised(pool, seed)
    router = randomised(Categorical(modules, 3, slots, 1, dedupe), seed + 1).eval()
    x = torch.randn(batch, tokens, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    flat = x.reshape(-1, 3).numpy()
    logits = np.einsum("kmd,sd->skm", router.weight.detach().numpy(), flat) + router.bias.detach().numpy()
    choice = logits.argmax(-1)
    wanted = expected(flat, pool, choice, combine, dedupe)
    gradients = []
    for form in SUM if combine == "sum" else CONCAT:
        pool.zero_grad()
        value, gates, scores, selected = form()(x, pool, router)
        if batch:
            np.testing.assert_allclose(value.detach().reshape(len(flat), -1), wanted, atol=1e-10)
            np.testing.assert_allclose(scores.detach().reshape(logits.shape), log_softmax(logits, -1), atol=1e-10)
            counts = np.stack([(choice == j).sum(1) for j in range(modules)], 1)
            counts = np.minimum(counts, 1) if dedupe else counts
            np.testing.assert_array_equal(gates.reshape(counts.shape), counts)
            np.testing.assert_array_equal(selected.argmax(-1).reshape(choice.shape), choice)
            (value**2).sum().backward()
            gradients.append([torch.zeros_like(p) if p.grad is None else p.grad for p in pool.parameters()])
    for found in gradients[1:]:
        torch.testing.assert_close(found, gradients[0], atol=1e-10, rtol=0)


def test_of_equally_probable_modules_the_first_is_taken() -> None:
    router = Categorical(4, 3, 2, 1).eval()
    nn.init.zeros_(router.weight)
    _, scores, selected = router(torch.randn(5, 3))
    assert (selected.argmax(-1) == 0).all()
    torch.testing.assert_close(scores, torch.full_like(scores, 1 / 4).log())


def test_in_training_modules_are_drawn_with_their_probabilities() -> None:
    torch.manual_seed(0)
    router = Categorical(3, 1, 2, 1)
    nn.init.zeros_(router.weight)
    router.bias.data = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]).log()
    draws = 40_000
    _, _, selected = router(torch.zeros(draws, 1))
    deviation = 4 / (2 * draws**0.5)
    torch.testing.assert_close(selected.mean(0), router.bias.exp(), atol=deviation, rtol=0)


@pytest.mark.parametrize("training", [False, True])
def test_a_choice_that_is_given_is_made_and_the_rest_drawn(training: bool) -> None:
    router = randomised(Categorical(5, 3, 2, 1), 0).train(training)
    choice = torch.tensor([[3, 1], [DRAW, 4], [0, DRAW]])
    torch.manual_seed(0)
    found = torch.stack([router(torch.ones(3, 3).double(), choice)[2].argmax(-1) for _ in range(200)])
    given = (choice != DRAW).expand_as(found)
    assert (found == choice)[given].all()
    assert len(found[:, 1, 0].unique()) > 1


def test_padding_chooses_nothing() -> None:
    router = randomised(Categorical(3, 2, 2, 1), 0)
    tokens = torch.randn(2, 4, 2).double()
    gates, scores, selected = router(tokens, real=valid(tokens, -2, torch.tensor([1, 4])))
    for record in (gates, scores, selected):
        assert not record[0, 1:].any()
        assert record[1].any()


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


def test_the_image_controller_is_a_convolution_its_mean_and_a_linear_map() -> None:
    router = randomised(Categorical(3, 4, 2, 3, image=(2, 4, 3)), 1).eval()
    x = torch.randn(5, 1, 2, 6, 7, dtype=torch.float64)
    assert router.conv is not None
    padded = np.pad(x[:, 0].numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    kernel, bias = (each.detach().numpy() for each in (router.conv.weight, router.conv.bias))
    maps = np.einsum("bchwij,ocij->bohw", windows, kernel) + bias[:, None, None]
    features = np.maximum(maps, 0).mean((2, 3))
    logits = np.einsum("kmf,bf->bkm", router.weight.detach().numpy(), features) + router.bias.detach().numpy()
    np.testing.assert_allclose(router(x)[1][:, 0].detach(), log_softmax(logits, -1), atol=1e-12)


def test_routes_are_told_what_to_choose_by_name_in_scans_too() -> None:
    text = """model m() { input xs: float[time, 3] pool p[3] = linear(3) router r = categorical(2)
      a = xs -> last -> p by r
      scan xs as x with h: float[3] { h = h + (x -> p by r) yield h } as states
      output a output states }"""
    model = modgraph.loads(text).build().train()
    xs = torch.randn(4, 5, 3)
    outer, inner = torch.randint(3, (4, 1, 2)), torch.randint(3, (4, 5, 1, 2))
    with choosing({"a.p": outer, "states.h.p": inner}):
        routing = model.compute({"xs": xs}, losses=False, routing=True).routing
    assert set(routing) >= {"a.p.selected", "states.h.p.selected"}
    torch.testing.assert_close(routing["a.p.selected"].argmax(-1), outer)
    torch.testing.assert_close(routing["states.h.p.selected"].argmax(-1), inner)


def test_the_fixed_selection_takes_the_first_modules_for_every_input() -> None:
    text = "model m() { input x: float[3] pool p[4] = linear(2) router r = fixed(2) y = x -> p by r output y }"
    model = modgraph.loads(text).build()
    x = torch.randn(5, 3)
    torch.testing.assert_close(model(x), model.p.expert(0)(x) + model.p.expert(1)(x))
    assert modgraph.loads(text).cost().nodes["p"].active_macs == 2 * 3 * 2


@pytest.mark.parametrize(
    ("pool", "router", "said"),
    [
        ("linear(2)", 'categorical(2, combine="concat", dedupe=true)', "dedupe goes with a sum"),
        ("linear(2)", 'categorical(controller="conv")', "looks at images"),
        ("linear(2)", "fixed(9)", "slots=9 from a pool of 4"),
        ("linear(2)", "categorical(0)", "must be at least 1"),
        ("linear(2)", 'categorical(combine="add")', 'must be one of "sum", "concat"'),
    ],
)
def test_what_cannot_be_chosen_is_told(pool: str, router: str, said: str) -> None:
    text = f"model m() {{ input x: float[3] pool p[4] = {pool} router r = {router} y = x -> p by r output y }}"
    with pytest.raises(modgraph.ModgraphError, match=said):
        modgraph.loads(text)
