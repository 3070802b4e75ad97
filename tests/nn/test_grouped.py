"""Modules all at once on rows sorted by module, against each by itself."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import modgraph
from modgraph.backends.report import compile_report
from modgraph.nn import choice_routes
from modgraph.nn import pool as pools
from modgraph.nn.grouped import SortedRows, pays
from tests.ordinary_run import some_examples

POOLS = {
    "linear(8) -> gelu -> linear(4)": "8",
    "linear(8, bias=false) -> relu": "8",
    "layer_norm -> linear(8) -> scale": "8",
    "rms_norm -> linear(8) -> silu": "8",
    "modulated_linear(8) -> tanh": "8",
    "linear(8) -> layer_norm(learned=false)": "3, 8",
}
SPEC = "model m() {{ input x: float[5, {shape}] pool p[{size}] = {region} router r = noisy_top_k(1) "
SPEC += "y = x -> p by r output y }}"


def pool_of(region: str, size: int, shape: str = "8") -> Any:
    model = modgraph.loads(SPEC.format(region=region, size=size, shape=shape)).build(seed=1)
    generator = torch.Generator().manual_seed(0)
    for weight in model.parameters():  # biases start at zero
        weight.data.normal_(0, 0.5, generator=generator)
    return model.p


@some_examples(25)
@given(region=st.sampled_from(list(POOLS)), counts=st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any))
def test_values_and_gradients_are_those_of_each_module_by_itself(region: str, counts: list[int]) -> None:
    pool = pool_of(region, len(counts), POOLS[region])
    width = [int(each) for each in POOLS[region].split(",")]
    x = torch.randn(sum(counts), *width, generator=torch.Generator().manual_seed(1), requires_grad=True)
    group_modules = pool.group_modules()
    assert group_modules is not None
    module_E = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    found = group_modules(SortedRows(module_E, torch.tensor(counts)), x)
    expected = torch.cat([pool.expert(j)(part) for j, part in enumerate(x.split(counts))])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    weights = [x, *pool.parameters()]
    for reduced in (torch.sum, lambda y: (y**2).sum()):  # the first has a gradient that is expanded
        own, theirs = (
            torch.autograd.grad(reduced(y), weights, retain_graph=True, allow_unused=True) for y in (found, expected)
        )
        for one, other in zip(own, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_a_pool_with_an_op_without_such_a_lowering_runs_one_after_another_and_is_reported() -> None:
    text = "model m() { input x: float[3, 6, 6] pool p[2] = conv(4, kernel=3) "
    text += 'router r = categorical(1, controller="conv") y = x -> p by r output y }'
    program = modgraph.loads(text)
    model = program.build()
    assert model.p.group_modules() is None
    assert "one after another on accelerators too: conv has no grouped form" in compile_report(program.ir, model)
    plain = modgraph.loads(SPEC.format(region="linear(8)", size=3, shape="8"))
    assert "accelerators" not in compile_report(plain.ir, plain.build())


def test_a_route_computed_so_is_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "pays", lambda x, modules: len(x) > 0)
    text = SPEC.format(region="linear(8) -> gelu -> linear(4)", size=7, shape="8")  # of which not all are chosen
    program = modgraph.loads(text)
    x = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(2))
    at_once, definition = (program.build(lowering=lowering).eval() for lowering in ("grouped", "message_passing"))
    torch.testing.assert_close(at_once(x), definition(x), rtol=1e-5, atol=1e-6)
    for model in (at_once, definition):
        (model(x) ** 2).sum().backward()
    for (name, one), other in zip(at_once.named_parameters(), definition.parameters(), strict=True):
        own, theirs = (torch.zeros_like(p) if p.grad is None else p.grad for p in (one, other))
        torch.testing.assert_close(own, theirs, rtol=1e-5, atol=1e-6, msg=name)


def test_on_the_processor_each_runs_by_itself() -> None:
    assert not pays(torch.zeros(4, 8, dtype=torch.bfloat16), pool_of("linear(8)", 2).expert(0))


@pytest.mark.cuda
def test_on_an_accelerator_a_grouped_product_gives_what_the_loop_gives() -> None:
    pool = pool_of("linear(16) -> gelu -> linear(8)", 4).cuda().bfloat16()
    counts = [5, 0, 8, 3]
    x = torch.randn(16, 8, device="cuda", dtype=torch.bfloat16)
    assert pays(x, pool.expert(0))
    module_E = torch.arange(4).repeat_interleave(torch.tensor(counts)).cuda()
    found = pool.group_modules()(SortedRows(module_E, torch.tensor(counts).cuda()), x)
    expected = torch.cat([pool.expert(j)(part) for j, part in enumerate(x.split(counts))])
    torch.testing.assert_close(found, expected, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("k", [1, 2])
def test_edges_found_without_waiting_for_a_device_give_the_same_values_and_gradients(k: int, at_once: bool) -> None:
    """Tokens of padding, and those that found no room, choose fewer than k modules."""
    model = modgraph.loads(
        "model m() { input x: float[time, 8] pool p[4] = linear(8) -> relu s = x -> linear(p) "
        f"w = (s -> softmax) * ((s, s -> top_k({k})) -> within_capacity(0.5)) y = x -> p by w output y }}"
    ).build(seed=2)
    x = torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(1), requires_grad=True)
    batch = {"x": x, "time_length": torch.tensor([6, 2, 4])}
    expected = model.compute(batch).outputs["y"]
    with (
        patch.object(choice_routes, "can_wait", lambda x: False),
        patch.object(pools, "pays", lambda x, modules: at_once),
        patch.object(choice_routes, "find_k_edges", wraps=choice_routes.find_k_edges) as find_k_edges,
    ):
        found = model.compute(batch).outputs["y"]
    assert find_k_edges.called == at_once
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    for own, theirs in zip(
        *(torch.autograd.grad((y**2).sum(), [x, *model.parameters()]) for y in (found, expected)), strict=True
    ):
        torch.testing.assert_close(own, theirs, rtol=1e-5, atol=1e-5)
