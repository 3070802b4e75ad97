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
from modgraph.backends.torch import Model
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
    "in each slot": f"{SLOTS} -> draw",
    "product in each slot": f"({SLOTS} -> top_k) * ({SLOTS} -> softmax)",
    "first": 's -> first_places(2, axis="slot") -> max(axis="slot")',
    "above": "s * (s -> above(0.3))",
    "stopped": "s * (c -> stop_gradient)",
    "half": "c / 2 * s",
    "like a function": "where(c, s, 0)",
    "threshold": "(s > 0.2) * s",
    "threshold of values": "(s > (s -> mean(axis=-1) -> new_axis(p, at=-1))) * (s -> sigmoid)",
    "threshold alone": "(s -> softmax) > 0.2",
    "threshold below": "(s <= 0) * s",
    "relu": "s -> relu",
    "relu of sums": "(s -> relu) / ((s -> relu -> sum(axis=-1) -> new_axis(p, at=-1)) + 0.1)",
    "clamp": "clamp(s, min=0)",
    "maximum": "maximum(s, 0)",
    "minimum": "minimum(s, 0)",
    "rank": "((s -> sort_order(descending=true)) < 2) * (s -> softmax)",
    "lowest rank": "((s -> sort_order) <= 1) * s",
    "ranks turned": f'(({TURNED} -> sort_order(axis="p") -> transpose("time", "p")) < 2) * s',
    "places": "((s -> positions) < 2) * s",
    "sum of choices": "(c + (-s -> top_k)) * s",
    "sum of gates": "c * s + (s -> draw) * (s -> sigmoid)",
    "difference": "c * s - (s -> above(0.5))",
    "larger of two": "maximum(c * s, c * (s -> sigmoid))",
    "stack": "(s -> top_k, c) -> stack -> sum(axis=-3)",
    "stacked modules": '(x -> gate, x -> gate, x -> gate, x -> gate) -> stack(axis="p") -> transpose("time", "p")',
    "concat": "(s -> split(2)) -> halves",
    "rename": 's -> rename(p="q") -> top_k(2) -> rename(q="p")',
    "rename plain": 'c * s -> rename(p="")',
    "dropout": "c * s -> dropout(0.5)",
    "training or inference": "(c * s, (s -> top_k) * s) -> training_or_inference",
    "choice or all": "(c * s, s -> relu) -> training_or_inference",
    "signs": "c * s -> abs -> erf -> sin",
    "powers": "(c * s) ** 2",
    "activations": "c * s -> tanh -> gelu -> silu -> unit",
    "where both": "where(s > 0, c * s, s -> above(0.5))",
    "complement": "where(s > 0, 0, s)",
    "merged": f'({SLOTS} -> top_k) -> merge(-2, -1) -> unmerge([2, 4], into=["slot", "p"]) -> max(axis="slot")',
    "contracted": f'({SLOTS} -> draw, {SLOTS} -> mean(axis="p")) -> contract(axis="slot")',
    "selected": f'{SLOTS} -> top_k(2) -> select(1, axis="slot")',
    "repeated": '(c -> new_axis(2, axis="slot")) -> mean(axis="slot")',
    "of an example": '(s -> mean(axis="time") -> top_k(2)) * s',
}
BLOCKS = (
    "block gate() { input x: float[w] output y = (x -> linear(1) -> select(0, axis=-1)) -> relu }"
    "block halves() { input a: float[n] input b: float[n] output y = (a -> relu, b) -> concat }"
)
DENSE = {
    "c * s -> exp": "exp",
    "c -> linear(p) -> softmax": "linear",
    "s * c + s": "add",
    "(c -> sum(axis=-1)) * s": "sum",
}


def text_of(weights: str) -> str:
    return f"""{BLOCKS} model m() {{ input x: float[time, 6] pool p[4] = linear(3) -> tanh
  s = x -> linear(p)
  c = s -> top_k(2)
  w = {weights}
  y = x -> p by w
  output y
  output w }}"""


def routed(graph: Graph) -> tuple[str, tuple[str, ...]]:
    """The router of the only route, and its forms."""
    (part,) = graph.parts()
    (route,) = part.graph.nodes_of(RouteNode)
    router = part.graph.declaration_of(route)
    return router.name, tuple(each.name for each in router.lowerings(part.facts_of(route)))


@pytest.mark.some(9)
@settings(max_examples=3, deadline=None)
@given(filling=st.sampled_from([0.0, float("nan"), float("inf")]), seed=st.integers(0, 99), training=st.booleans())
@pytest.mark.parametrize("weights", SPARSE)
def test_every_lowering_gives_what_all_modules_would(weights: str, filling: float, seed: int, training: bool) -> None:
    """Values, and the gradients of all weights, noise and padding included."""
    program = modgraph.loads(text_of(SPARSE[weights]))
    name, lowerings = routed(program.ir)
    assert name == "chosen" and len(lowerings) > 1
    x = torch.randn(3, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    for lowering in lowerings:
        model = program.build(seed=1, lowering=lowering).double().train(training)
        torch.manual_seed(seed)
        found = model.compute({"x": x.masked_fill(UNREAL, filling), "time_length": LENGTH}).outputs
        w, slots = clear_padding(found["w"]), [1] * (found["w"].dim() - 3)
        messages = model.get_submodule("p").all(x.masked_fill(UNREAL, 0)).reshape(3, 5, *slots, 4, 3)
        expected = (messages * w.unsqueeze(-1)).sum(-2)
        torch.testing.assert_close(found["y"], expected, atol=1e-12, rtol=0)
        if not training and filling:
            continue  # what stands in padding is replaced in training alone
        ours, theirs = (gradients(y, [*model.parameters()]) for y in (found["y"], expected))
        for gradient, wanted in zip(ours, theirs, strict=True):
            torch.testing.assert_close(gradient, wanted, atol=1e-10, rtol=0)


@pytest.mark.some(20)
@pytest.mark.parametrize("weights", [name for name in SPARSE if "straight" not in name and "choice or" not in name])
def test_a_module_runs_only_on_what_chose_it(weights: str) -> None:
    """In inference, as many messages are computed as weights are not zero."""
    program = modgraph.loads(text_of(SPARSE[weights]))
    for lowering in ("grouped", "per_module"):
        model = program.build(seed=1, lowering=lowering).eval()
        rows = rows_of_modules(model)
        x = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(3))
        found = model.compute({"x": x, "time_length": LENGTH}, routing=True)
        choice = found.routing["p.selected"]
        assert sum(map(len, rows)) == choice.sum() < (~UNREAL).sum() * 4, f"{lowering} computes more than is chosen"
        assert not clear_padding(found.outputs["w"])[choice == 0].any(), "what is left out is zero"


def clear_padding(weights: Tensor) -> Tensor:
    """Weights [B, time, …, p] with zeros in padding."""
    return weights.masked_fill(UNREAL.reshape(3, 5, *[1] * (weights.dim() - 2)), 0)


def rows_of_modules(model: Model) -> list[Tensor]:
    """What the modules of the pool will have been given, one after another."""
    rows: list[Tensor] = []
    for j in range(4):
        model.get_submodule("p").expert(j).register_forward_pre_hook(lambda module, given: rows.append(given[0]))
    return rows


def gradients(y: Tensor, of: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(y.square().sum(), of, retain_graph=True, materialize_grads=True)


def test_a_choice_that_nothing_was_taken_from_is_what_a_route_records() -> None:
    program = modgraph.loads(text_of(SPARSE["slots product"]))
    model = program.build().train()
    found = model.compute({"x": torch.randn(3, 5, 6), "time_length": LENGTH}, routing=True)
    picks = found.routing["p.selected"]
    assert set(picks.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(picks.sum(-1) > 0, (~UNREAL[..., 0]).expand(3, 5)) and picks.sum(-1).max() == 2


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


LOST = {
    "c * s -> exp": "exp",
    "c -> linear(p) -> softmax": "linear",
    "s * c + s": "add",
    "c * s -> softmax": "softmax",
    "(s > 0.2) * s -> softmax": "softmax",
    "where(c, s, -1000) -> softmax": "where",
    "s + stop_gradient(c - s)": "subtract",
    "1 - c": "subtract",
    "((s -> sort_order) < 2) + 0.1": "add",
    "(c + (s -> draw)) * s -> sigmoid": "sigmoid",
}


@pytest.mark.parametrize("weights", LOST)
def test_check_warns_once_where_a_choice_ends(weights: str) -> None:
    text = text_of(weights).replace("output y", "z = x -> p by w output z output y")
    (found,) = [each for each in modgraph.loads(text).warnings if each.code == "MG411"]
    assert f'every module runs: "{LOST[weights]}"' in found.text()
    assert found.span is not None and found.span.source.position(found.span.start)[0] == 4


@pytest.mark.parametrize(
    "weights",
    [
        *SPARSE.values(),
        "s -> softmax",
        "s -> relu -> softmax",
        "(x -> linear(4) -> relu) -> linear(p) -> softmax",
        "(x, c) -> concat -> linear(p) -> softmax",
        "((x -> p) + (x -> p) * (c -> new_axis(3, at=-1)), x -> linear(3)) -> contract -> softmax",
    ],
)
def test_nothing_is_said_of_weights_that_keep_their_zeros_or_have_no_choice_behind_them(weights: str) -> None:
    assert not [each for each in modgraph.loads(text_of(weights)).warnings if each.code == "MG411"]


def test_a_choice_of_an_example_is_one_for_all_its_tokens() -> None:
    text = text_of('s -> mean(axis="time") -> top_k(2)').replace("output w", "")
    program = modgraph.loads(text)
    assert routed(program.ir)[0] == "chosen"
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    model = program.build().double().eval()
    found = model.compute({"x": x, "time_length": torch.tensor([5, 5, 5])}, routing=True)
    picks = found.routing["p.selected"]
    expected = (model.get_submodule("p").all(x) * picks.unsqueeze(-1)).sum(-2)
    assert torch.equal(picks, picks[:, :1].expand_as(picks)) and (picks.sum(-1) == 2).all()
    torch.testing.assert_close(found.outputs["y"], expected)


def test_of_weights_without_a_choice_nothing_is_said_and_of_own_axes_that_they_are() -> None:
    program = modgraph.loads(text_of("s -> softmax"))
    assert "choice" not in compile_report(program.ir, program.build())
    program = modgraph.loads(text_of(f"{SLOTS} -> top_k(2)"))
    assert "its slots choose as many modules as there are" in compile_report(program.ir, program.build())


def test_a_long_chain_of_products_is_followed_once() -> None:
    chain = " ".join("w = w * w" for _ in range(300))
    for start, name in (("c", "chosen"), ("s", "weighted")):
        text = text_of(start).replace(f"w = {start}", f"w = {start} {chain}")
        assert routed(modgraph.loads(text).ir)[0] == name


@pytest.mark.slow
def test_what_chance_and_gates_choose_in_training_is_fixed_in_a_bundle(tmp_path: Path) -> None:
    text = f"""model m() {{ input x: float[time, 6] pool p[4] = linear(3) -> tanh pool q[4] = linear(3) -> tanh
      s = x -> linear(q) w = {SPARSE["straight"]} y = x -> q by w v = {SPARSE["slots product"]} z = x -> p by v
      output y output z }}"""
    model = modgraph.loads(text).build()
    verified = modgraph.export(model, tmp_path / "m.onnx", routing=True).verified
    assert verified.worst < 1e-5 and not any(verified.unreached.values())
