"""Scans in ONNX Runtime: one Scan node, batch and time of any size, padded examples, decisions as in torch."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from modgraph_runtime import Bundle

import modgraph
from modgraph.backends.onnx import deterministic
from modgraph.backends.torch import Model
from tests.examples import GRU, ROUTERS_IN_SCAN, TWO_SCANS, routers_in_one_scan


def randomised(program: modgraph.Program, deviation: float = 0.7) -> Model:
    model = program.build()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, deviation, generator=generator)
    return model


def agree(model: Model, path: Path, routing: bool = True) -> None:
    """Hold a bundle against torch at lengths that it was never verified at, padding among them."""
    bundle, inference = Bundle(path), deterministic(model)
    for batch, time in ((1, 1), (3, 13), (64, 4)):
        inputs = {}
        for name, type_ in inference.graph.input_types.items():
            shape = (batch, *(time if isinstance(each, str) else each for each in type_.dimensions))
            limit = time + 1 if type_.dtype == "length" else type_.size
            inputs[name] = torch.randn(shape) if limit is None else torch.randint(limit, shape)
        computed = inference.compute(inputs, losses=False, routing=routing)
        found = bundle.run({name: value.numpy() for name, value in inputs.items()}, routing=routing)
        for name, theirs in {**computed.outputs, **computed.routing}.items():
            scale = max(float(theirs.abs().max()), 1e-6)
            assert np.abs(found[name] - theirs.numpy()).max() <= 2e-5 * scale, (name, batch, time)


def nodes_of(path: Path) -> list[onnx.NodeProto]:
    return list(onnx.load(path).graph.node)


@pytest.mark.some(1)
@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize("k", [1, 2])
def test_a_gru_with_a_routed_candidate_is_one_scan_that_computes_only_its_choice(k: int, tmp_path: Path) -> None:
    model = randomised(modgraph.loads(GRU, k=k))
    report = modgraph.export(model, tmp_path / "gru.onnx", routing=True)
    assert report.verified.lengths == ({"time": 5}, {"time": 8})
    assert report.verified.unreached == {"transition": []}
    assert "gathered by index" in str(report)
    agree(model, tmp_path / "gru.onnx")
    nodes = nodes_of(tmp_path / "gru.onnx")
    (scan,) = (node for node in nodes if node.op_type == "Scan")
    body = next(attribute.g for attribute in scan.attribute if attribute.name == "body")
    products = sum(node.op_type in ("MatMul", "Gemm") for node in body.node)
    assert products == 2 + k  # gates, the router without its noise, the chosen
    assert not any(node.op_type == "Concat" and len(node.input) == 3 for node in body.node), "weights stacked each step"


@pytest.mark.usefixtures("trace_once")
def test_a_bundle_without_routing_computes_none_of_its_records(tmp_path: Path) -> None:
    model = randomised(modgraph.loads(GRU))
    modgraph.export(model, tmp_path / "gru.onnx")
    agree(model, tmp_path / "gru.onnx", routing=False)
    (scan,) = (node for node in nodes_of(tmp_path / "gru.onnx") if node.op_type == "Scan")
    assert len(scan.output) == 2
    assert "controller.noise_weight" not in {each.name for each in onnx.load(tmp_path / "gru.onnx").graph.initializer}


def test_names_of_a_traced_step_are_the_users_to_take(tmp_path: Path) -> None:
    name = "clone_scan_combine_graph_0__subgraph_in"
    text = f"""model m() {{ input {name}: float[time, 3]
      scan {name} as v with h: float[3] {{ h = h + v yield h }} as clone_scan_combine_graph_0
      output clone_scan_combine_graph_0 }}"""
    model = randomised(modgraph.loads(text))
    modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx")


@pytest.mark.slow
def test_modules_with_more_weights_run_each_on_the_tokens_that_chose_it(tmp_path: Path) -> None:
    model = randomised(modgraph.loads(GRU, k=2, hidden=65), 0.2)  # wide ones that are larger magnify rounding
    modgraph.export(model, tmp_path / "gru.onnx")
    agree(model, tmp_path / "gru.onnx", routing=False)
    (scan,) = (node for node in nodes_of(tmp_path / "gru.onnx") if node.op_type == "Scan")
    body = next(attribute.g for attribute in scan.attribute if attribute.name == "body")
    kinds = [node.op_type for node in body.node]
    assert kinds.count("Gemm") == 2 + 3  # gates, scores, and each module on its slice
    assert len(next(node.output for node in body.node if node.op_type == "Split" and len(node.output) == 3)) == 3


@pytest.mark.slow
def test_two_scans_with_unlike_modules_repeats_and_values_from_outside(tmp_path: Path) -> None:
    model = randomised(modgraph.loads(TWO_SCANS, depth=1))
    report = modgraph.export(model, tmp_path / "two.onnx", routing=True)
    assert "each module runs once, on its slice" in str(report)
    agree(model, tmp_path / "two.onnx")
    assert sum(node.op_type == "Scan" for node in nodes_of(tmp_path / "two.onnx")) == 2
    ports = {port["name"]: port["shape"] for port in Bundle(tmp_path / "two.onnx").manifest["routing"]}
    assert ports["states.mix.1.mixed.selected"] == ["time", 1, 3]


def test_every_router_agrees_inside_a_scan(tmp_path: Path) -> None:
    """Tracing all in one scan takes half as long as tracing scans of one each."""
    model = randomised(modgraph.loads(routers_in_one_scan()))
    modgraph.export(model, tmp_path / "m.onnx", routing=True)
    assert len(Bundle(tmp_path / "m.onnx").outputs) == len(ROUTERS_IN_SCAN)
    agree(model, tmp_path / "m.onnx")


@pytest.mark.slow
def test_states_may_start_anywhere_and_the_axis_may_be_fixed(tmp_path: Path) -> None:
    text = """model m() { input x: float[4, 3] input start: float[3]
      scan x as v with h: float[3] = start, still: float[3] = start {
        h = (h + v) * start + still yield h yield h yield v
      } as y, same, given
      output y output same output given }"""
    model = randomised(modgraph.loads(text))
    modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx")


@pytest.mark.slow
def test_a_loop_that_was_traced_at_one_length_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """model m() { input x: float[time, 2] scan x as v with h: float[2] { h = 0.5 * h + v yield h } as y
      output y }"""
    module = sys.modules["modgraph.nn.scan"]
    monkeypatch.setattr(module, "_export", module._loop)
    with pytest.raises(modgraph.ModgraphError):
        modgraph.export(modgraph.loads(text).build(), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_what_only_losses_need_of_a_scan_is_left_out(tmp_path: Path) -> None:
    text = """model m() { input x: float[time, 4] target y: class[time, 2]
      scan x as v with h: float[4], g: float[4] {
        h = h + v  g = g + v -> linear(4) -> dropout(0.5)
        yield h yield v -> linear(2) yield g -> linear(2)
      } as s, used, helper
      output used  loss cross_entropy(helper, y)  loss cross_entropy(used, y) output s }"""
    model = randomised(modgraph.loads(text))
    modgraph.export(model, tmp_path / "m.onnx")
    assert {name.split(".")[1] for name in deterministic(model).state_dict()} == {"yield2"}
    agree(model, tmp_path / "m.onnx")
