"""What is known of weights: every form computes what all modules would give, and what makes weights dense is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import modgraph
from modgraph.backends.report import compile_report
from modgraph.ir import Graph, RouteNode

LENGTH = torch.tensor([5, 2, 0])
UNREAL = torch.arange(5)[:, None] >= LENGTH[:, None, None]
SLOTS = 'x -> linear(8) -> unmerge([2, 4], into=["slot", "p"])'
TURNED = 's -> transpose("p", "time")'
SPARSE = {
    "product": "(s -> softmax) * c",
    "of two choices": "s * (s -> above(0.1)) * c",
    "renormalised": "((s -> softmax) * c) / ((s -> softmax) * c -> sum(axis=-1))",
    "where": "where(c, s, 0)",
    "where not": "where(1 - c, 0, s) * c",
    "among": "(s, c) -> masked_softmax",
    "capacity": "((s, c) -> within_capacity(0.5, k=2)) * s",
    "straight": "(s -> softmax, s -> draw) -> straight_through",
    "straight product": "((s -> sigmoid, s -> above) -> straight_through) * (s -> sigmoid)",
    "turned": f'{TURNED} -> top_k(2, axis="p") -> transpose("time", "p")',
    "turned product": f'({TURNED} -> top_k(2, axis="p")) * ({TURNED}) -> transpose("time", "p")',
    "slots": f'{SLOTS} -> draw -> sum(axis="slot")',
    "slots once": f'{SLOTS} -> draw -> max(axis="slot")',
    "slots product": f'({SLOTS} -> draw) * ({SLOTS}) -> sum(axis="slot")',
    "first": 's -> first_places(2, axis="slot") -> max(axis="slot")',
    "above": "s * (s -> above(0.3))",
    "stopped": "s * (c -> stop_gradient)",
    "half": "c / 2 * s",
    "like a function": "where(c, s, 0)",
}
DENSE = {
    "c * s -> exp": "exp",
    "c -> linear(p) -> softmax": "linear",
    "s * c + s": "add",
    "(c -> sum(axis=-1)) * s": "sum",
}


def text_of(weights: str) -> str:
    return f"""model m() {{ input x: float[time, 6] pool p[4] = linear(3) -> tanh
  s = x -> linear(p)
  c = s -> top_k(2)
  w = {weights}
  y = x -> p by w
  output y
  output w }}"""


def routed(graph: Graph) -> tuple[str, tuple[str, ...]]:
    """The router of the only route, and its forms."""
    (part,) = graph.parts()
    (route,) = part.graph.of_kind(RouteNode)
    router = part.graph.router_of(route).router
    return router.name, tuple(each.form for each in router.lowerings(part.facts_of(route)))


@settings(max_examples=3, deadline=None)
@given(filling=st.sampled_from([0.0, float("nan"), float("inf")]), seed=st.integers(0, 99), training=st.booleans())
@pytest.mark.parametrize("weights", SPARSE)
def test_every_form_gives_what_all_modules_would(weights: str, filling: float, seed: int, training: bool) -> None:
    """Values, and the gradients of all weights, noise and padding included."""
    program = modgraph.loads(text_of(SPARSE[weights]))
    name, forms = routed(program.ir)
    assert name == "chosen" and len(forms) > 1
    x = torch.randn(3, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    for form in forms:
        model = program.build(seed=1, lowering=form).double().train(training)
        torch.manual_seed(seed)
        found = model.compute({"x": x.masked_fill(UNREAL, filling), "time_length": LENGTH}).outputs
        w = found["w"].masked_fill(UNREAL, 0)
        messages = model.get_submodule("p").all(x.masked_fill(UNREAL, 0))
        expected = (messages * w.unsqueeze(-1)).sum(-2)
        torch.testing.assert_close(found["y"], expected, atol=1e-12, rtol=0)
        if not training and filling:
            continue  # what stands in padding is replaced in training alone
        ours, theirs = (gradients(y, [*model.parameters()]) for y in (found["y"], expected))
        for gradient, wanted in zip(ours, theirs, strict=True):
            torch.testing.assert_close(gradient, wanted, atol=1e-10, rtol=0)


def gradients(y: Tensor, of: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(y.square().sum(), of, retain_graph=True, materialize_grads=True)


def test_a_choice_that_nothing_was_taken_from_is_what_a_route_records() -> None:
    program = modgraph.loads(text_of(SPARSE["slots product"]))
    model = program.build().train()
    found = model.compute({"x": torch.randn(3, 5, 6), "time_length": LENGTH}, routing=True)
    chosen = found.routing["y.p.selected"]
    assert set(chosen.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(chosen.sum(-1) > 0, (~UNREAL[..., 0]).expand(3, 5)) and chosen.sum(-1).max() == 2


def test_an_export_computes_what_a_straight_through_gate_opens() -> None:
    program = modgraph.loads(text_of(SPARSE["straight"]))
    lines = compile_report(program.ir, program.build()).splitlines()
    assert any("dense; every module runs while a model learns" in line for line in lines)
    assert any("when exported: per_module" in line for line in lines)


@pytest.mark.parametrize("weights", DENSE)
def test_compile_says_what_makes_weights_dense(weights: str) -> None:
    program = modgraph.loads(text_of(weights))
    assert routed(program.ir)[0] == "weighted"
    report = compile_report(program.ir, program.build())
    assert f'a choice lies behind the weights, but "{DENSE[weights]}" (<string>:4:' in report


def test_of_weights_without_a_choice_nothing_is_said_and_of_own_axes_that_they_are() -> None:
    program = modgraph.loads(text_of("s -> softmax"))
    assert "choice" not in compile_report(program.ir, program.build())
    program = modgraph.loads(text_of(f"{SLOTS} -> draw"))
    assert "followed where their axes are" in compile_report(program.ir, program.build())


def test_a_long_chain_of_products_is_followed_once() -> None:
    chain = " ".join("w = w * w" for _ in range(300))
    for start, name in (("c", "chosen"), ("s", "weighted")):
        text = text_of(start).replace(f"w = {start}", f"w = {start} {chain}")
        assert routed(modgraph.loads(text).ir)[0] == name


def test_what_chance_and_gates_decided_in_training_is_fixed_in_a_bundle(tmp_path: Path) -> None:
    text = f"""model m() {{ input x: float[time, 6] pool p[4] = linear(3) -> tanh pool q[4] = linear(3) -> tanh
      s = x -> linear(q) w = {SPARSE["straight"]} y = x -> q by w v = {SPARSE["slots product"]} z = x -> p by v
      output y output z }}"""
    model = modgraph.loads(text).build()
    verified = modgraph.export(model, tmp_path / "m.onnx", routing=True).verified
    assert verified.worst < 1e-5 and not any(verified.unreached.values())
