"""A stored pool is the same pool: names, starts, results, gradients and optimizer steps are those of its modules."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import modgraph
from modgraph.backends.onnx import export
from modgraph.backends.report import compile_report
from modgraph.backends.torch import Model
from modgraph.backends.torch.stored import StoredPool, list_stored, tensors_by_name
from modgraph.diagnostics import ModgraphError
from modgraph.ir import from_json, to_json, weights_of
from modgraph.ir.text.parse import parse_text
from modgraph.passes import Store, apply_passes, build_training_passes
from tests.ordinary_run import some_examples

SPEC = """model m() {{ input x: float[5, {shape}] target y: float[{axes}] pool p[6] = {region} {route}
  loss mse(z, y) output z }}"""
BY_CHOICE = "router r = noisy_top_k(2) z = x -> p by r"
REGIONS = {
    "linear(12) -> gelu -> linear(8)": ("8", "5, 8"),
    "linear(3, bias=false) -> relu": ("8", "5, 3"),
    "layer_norm -> linear(8) -> scale": ("8", "5, 8"),
    "rms_norm -> linear(4)": ("8", "5, 4"),
    "modulated_linear(8) -> tanh": ("8", "5, 8"),
    "linear(8) -> layer_norm": ("3, 8", "5, 3, 8"),
}
ROUTES = {
    "z = x -> p": "5, 6, 8",
    "h = x -> p z = h -> p": "5, 6, 8",  # all modules, then each on its row
    "z = x -> p by (x -> linear(p) -> softmax)": "5, 8",
    "s = x -> linear(p) z = x -> p by (s * (s -> top_k(3, axis=-2)))": "5, 8",
}


def build_both(text: str, **options: Any) -> tuple[Model, Model]:
    program = modgraph.loads(text)
    stored, separate = (program.build(seed=3, pools=pools, **options).double() for pools in ("stored", "modules"))
    assert isinstance(stored.lookup("p"), StoredPool)
    return stored, separate


def batch_of(model: Model, size: int = 4) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    types = {**model.graph.input_types, **model.graph.target_types}
    return {
        name: torch.randn(size, *(axis.size for axis in type_.shape), dtype=torch.float64, generator=generator)  # type: ignore[arg-type]
        for name, type_ in types.items()
    }


def compare_training(stored: Model, separate: Model, steps: int = 5) -> None:
    """Train both, and compare losses and all weights."""
    batch = batch_of(stored)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=0.01) for model in (stored, separate)]
    for step in range(steps):
        losses = []
        for model, optimizer in zip((stored, separate), optimizers, strict=True):
            torch.manual_seed(step)
            optimizer.zero_grad()
            losses.append(model.compute(batch).loss)
            losses[-1].backward()
            optimizer.step()
        torch.testing.assert_close(*losses, rtol=1e-12, atol=1e-12)
    own, theirs = stored.state_dict(), separate.state_dict()
    for name, weight in theirs.items():
        torch.testing.assert_close(own[name], weight, rtol=0, atol=1e-9, msg=name)


def test_weights_have_the_names_and_initial_values_of_modules() -> None:
    stored, separate = build_both(SPEC.format(shape="8", axes="5, 8", region="linear(8) -> scale", route=BY_CHOICE))
    own, theirs = stored.state_dict(), separate.state_dict()
    assert [*own] == [*theirs]
    assert all(own[name].equal(weight) for name, weight in theirs.items())
    assert own["p.4.linear.weight"].equal(stored.p[4].linear.weight)
    assert own["p.4.linear.weight"].equal(stored.lookup("p.4.linear.weight"))
    names = ["p.*.linear.weight", "p.*.linear.bias", "p.*.scale.weight"]
    assert [each.name for each in list_stored(stored)] == names
    assert {*names} < tensors_by_name(stored).keys()
    assert len([*stored.parameters()]) == len(names) + 2


@pytest.mark.parametrize("region", REGIONS)
def test_a_step_is_that_of_the_modules(region: str) -> None:
    shape, axes = REGIONS[region]
    compare_training(*build_both(SPEC.format(shape=shape, axes=axes, region=region, route=BY_CHOICE)))


@pytest.mark.parametrize("route", ROUTES)
def test_routes_to_all_modules_are_those_of_the_modules(route: str) -> None:
    for region in ("linear(8) -> tanh", "linear(6) -> scale -> linear(8)", "layer_norm -> linear(8)"):
        compare_training(*build_both(SPEC.format(shape="8", axes=ROUTES[route], region=region, route=route)), steps=2)


@pytest.mark.parametrize("lowering", ["grouped", "per_module", "masked", "message_passing"])
def test_every_lowering_runs_on_stored_weights(lowering: str) -> None:
    text = SPEC.format(shape="8", axes="5, 8", region="linear(8) -> gelu -> linear(8)", route=BY_CHOICE)
    compare_training(*build_both(text, lowering=lowering), steps=2)


def test_a_frozen_pool_stays_and_a_module_with_an_array_of_its_own_is_stored() -> None:
    text = """block expert() { input x: float[8] weight w: float[8] = normal(1) y = x * w -> linear(8) output y }
      model m() { input x: float[5, 8] target y: float[5, 8] frozen { pool p[6] = linear(8) } pool q[4] = expert()
        router r = noisy_top_k(2) router s = noisy_top_k(1) z = (x -> p by r) -> q by s loss mse(z, y) output z }"""
    stored, separate = build_both(text)
    before = stored.state_dict()["p.0.linear.weight"].clone()
    compare_training(stored, separate)
    assert stored.state_dict()["p.0.linear.weight"].equal(before)
    assert not any(each.requires_grad for each in stored.p.parameters())
    assert len([*stored.q.parameters()]) == 3


@some_examples(25)
@given(
    counts=st.lists(st.integers(0, 4), min_size=2, max_size=6).filter(any),
    widths=st.sampled_from(["linear(8) -> gelu -> linear(4)", "linear(3) -> relu -> linear(5, bias=false)"]),
    few=st.sampled_from([0, 10**9]),
)
def test_sorted_messages_give_values_and_gradients_of_each_module(counts: list[int], widths: str, few: int) -> None:
    """As one product, one product for each module, or by gathered weights."""
    text = f"model m() {{ input x: float[5, 8] pool p[{len(counts)}] = {widths} router r = noisy_top_k(1) "
    pool = modgraph.loads(text + "y = x -> p by r output y }").build(pools="stored").p
    generator = torch.Generator().manual_seed(1)
    for weight in pool.parameters():
        weight.data.normal_(0, 0.5, generator=generator)
    x = torch.randn(sum(counts), 8, generator=generator, requires_grad=True)
    module_E = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("modgraph.backends.torch.stored.FEW_GATHERED", few)
        found = pool.run_sorted(x, module_E, torch.tensor(counts))
    expected = torch.cat([expert(part) for expert, part in zip(pool.experts(), x.split(counts), strict=True)])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    weights = [x, *pool.parameters()]
    own, theirs = (torch.autograd.grad((y**2).sum(), weights) for y in (found, expected))
    for one, other in zip(own, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------ state dicts


def test_state_dicts_load_whole_in_part_and_by_assignment() -> None:
    text = SPEC.format(shape="8", axes="5, 8", region="linear(8)", route=BY_CHOICE)
    stored, separate = build_both(text)
    other = modgraph.loads(text).build(seed=9, pools="stored").double()
    other.load_state_dict({"p.2.linear.weight": separate.state_dict()["p.2.linear.weight"]}, strict=False)
    equal = [name for name, x in other.state_dict().items() if x.equal(separate.state_dict()[name])]
    assert [name for name in equal if name.startswith("p.") and "bias" not in name] == ["p.2.linear.weight"]
    for assign in (False, True):
        other = modgraph.loads(text).build(seed=9, pools="stored").double()
        other.load_state_dict({name: x.clone() for name, x in separate.state_dict().items()}, assign=assign)
        assert all(x.equal(separate.state_dict()[name]) for name, x in other.state_dict().items())
        assert all(each.requires_grad for each in other.p.parameters())
    separate.load_state_dict(stored.state_dict())


def test_wrong_state_dicts_are_refused_by_name() -> None:
    stored, _ = build_both(SPEC.format(shape="8", axes="5, 8", region="linear(8)", route=BY_CHOICE))
    full = stored.state_dict()
    for wrong, message in (
        ({**full, "p.6.linear.weight": full["p.5.linear.weight"]}, 'Unexpected key.*"p.6.linear.weight"'),
        ({name: x for name, x in full.items() if name != "p.1.linear.bias"}, 'Missing key.*"p.1.linear.bias"'),
        ({**full, "p.3.linear.bias": torch.zeros(7)}, r"size mismatch for p.3.linear.bias: \[7\], not \[8\]"),
    ):
        with pytest.raises(RuntimeError, match=message):
            stored.load_state_dict(wrong)


# ------------------------------------------------------------ the decision

OBSTACLES = {
    "pool p = [linear(8), linear(8) -> relu] z = x -> p": "its modules are of several kinds",
    "pool p[2] = linear(8) -> dropout(0.5) z = x -> p": "dropout is random in training",
    "pool p[2] = relu z = x -> p": "its modules have no weights",
    "pool p[2] = linear(8) z = x -> p[1]": "a route names one of its modules",
    "pool p[2] = conv(8, kernel=3) -> flatten z = image -> p": "conv does not run on stacked weights",
    "pool p[2] = batch_norm -> conv(8, kernel=3) -> flatten z = image -> p": "batch_norm has a state",
}


@pytest.mark.parametrize("text", OBSTACLES)
def test_a_pool_that_cannot_be_stored_is_refused_with_its_place(text: str) -> None:
    program = modgraph.loads(f"model m() {{ input x: float[5, 8] input image: float[3, 4, 4] {text} output z }}")
    with pytest.raises(ModgraphError, match=OBSTACLES[text]) as caught:
        program.build(pools="stored")
    assert caught.value.diagnostics[0].span is not None
    assert not isinstance(program.build().lookup("p"), StoredPool)


def test_another_word_is_refused() -> None:
    program = modgraph.loads("model m() { input x: float[4] pool p[2] = linear(4) z = x -> p output z }")
    with pytest.raises(ModgraphError, match='unknown pools "store"'):
        program.build(pools="store")


def test_pools_that_have_many_small_modules_are_stored_and_reported() -> None:
    text = "model m(n=64, w=8) { input x: float[4, 8] pool p[n] = linear(w) router r = noisy_top_k(1) "
    text += "z = x -> p by r output z }"
    for parameters, stored in (({}, True), ({"n": 8}, False), ({"w": 4096}, False)):
        program = modgraph.loads(text, **parameters)
        model = program.build()
        assert isinstance(model.lookup("p"), StoredPool) == stored
        said = "stored, one tensor for each weight" if stored else "module by module"
        assert f"pool p: {said}; it pays from 32 modules on" in compile_report(program.ir, model)
    model = program.build(pools="stored")
    assert "pool p: stored, one tensor for each weight; as requested" in compile_report(program.ir, model)


def test_a_graph_says_which_pools_are_stored() -> None:
    graph = modgraph.loads("model m() { input x: float[4] pool p[2] = linear(4) z = x -> p output z }").ir
    lowered = apply_passes(graph, build_training_passes(store=Store("stored")))
    assert "pool[2] stored of x: float[4]" in str(lowered)
    assert parse_text(str(lowered)) == lowered == from_json(to_json(lowered))
    assert lowered != apply_passes(graph, build_training_passes())


# ------------------------------------------------------------ bundles


@pytest.mark.slow
def test_a_bundle_of_many_modules_has_a_tensor_for_each_weight_and_no_node_for_each_module(tmp_path: Any) -> None:
    text = "model m(n=256) { input x: float[3, 8] pool p[n] = linear(4) -> relu -> linear(8) router r = noisy_top_k(2) "
    text += "z = x + (x -> p by r) output z }"
    program = modgraph.loads(text)
    report = export(program.build(), tmp_path / "m.onnx")
    assert report.verified.worst < 1e-5
    proto = onnx.load(tmp_path / "m.onnx")
    assert len(proto.graph.node) < 150
    shapes = {each.name: [*each.dims] for each in proto.graph.initializer}
    assert shapes["p.stored.linear.weight"] == [256, 4, 8]
    assert not [name for name in shapes if name.startswith("p.0.")]
    assert {weight.name for weight in weights_of(report.graph)} > {"p.7.linear.weight"}


def test_the_memory_of_a_step_is_measured_without_numbers() -> None:
    text = SPEC.format(shape="8", axes="5, 8", region="linear(8) -> gelu -> linear(8)", route=BY_CHOICE)
    few, many = (modgraph.loads(text.replace("p[6]", f"p[{n}]")).memory(batch=16) for n in (31, 32))
    assert few.weights < many.weights < 1.1 * few.weights
    assert 0.5 * few.peak < many.peak < 2 * few.peak
