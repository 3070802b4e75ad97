"""Passes go into scans: before and after as text, and equal in numbers."""

from __future__ import annotations

import pytest
import torch

import modgraph
from modgraph.backends.onnx import deterministic
from modgraph.ir import Graph, Result, ScanNode, grow
from modgraph.passes import INFERENCE, Determinize, InferenceOnly, Lower, apply_passes, choices
from modgraph.types import Misfit
from tests.examples import GRU, TWO_SCANS

BODY = """model m() {
  input x: float[time, 4]  input context: float[4]  target y: class[time, 2]
  scan x as v with h: float[4], g: float[4] = context, f: float[4] {
    h = h + (v -> linear(4) -> dropout(0.5))
    f = f + g
    g = g + v
    yield g -> linear(2)
    yield h -> dropout(0.1) -> dropout(0.2)
    yield f
  } as helper, s, total
  loss cross_entropy(helper, y)
  output s
}"""


def scan_of(graph: Graph) -> ScanNode:
    (scan,) = graph.nodes_of(ScanNode)
    return scan


def test_inference_leaves_out_results_states_and_inputs_that_no_output_needs() -> None:
    before = modgraph.loads(BODY).ir
    after = InferenceOnly()(before)
    scan = scan_of(after)
    assert scan.region.arguments == ("helper.v", "helper.h")
    assert (scan.variable, scan.states, scan.captured) == ("helper.v", ("helper.h",), ())
    assert set(after.inputs("helper")) == {"helper.v"}
    assert set(after.inputs("output.s")["x"].node for _ in [0]) == {"helper"}
    assert after.inputs("output.s")["x"].index == 0 != before.inputs("output.s")["x"].index
    assert scan.following == (Result("helper.h.add"),)
    assert scan.stacked == (Result("helper.yield2.dropout2"),)


def test_what_only_a_dropped_result_reads_from_outside_is_dropped_too() -> None:
    text = BODY.replace("  scan x", "  far = context -> linear(4)\n  scan x").replace("yield g ->", "yield g + far ->")
    before, after = modgraph.loads(text).ir, InferenceOnly()(modgraph.loads(text).ir)
    assert scan_of(before).captured == ("outer.far.linear",)
    assert scan_of(after).captured == () and "far.linear" not in after


def test_states_that_the_needed_ones_depend_on_stay() -> None:
    text = BODY.replace("output s", "output total")
    scan = scan_of(InferenceOnly()(modgraph.loads(text).ir))
    assert (scan.stacked, scan.states) == ((Result("helper.f.add"),), ("helper.g", "helper.f"))


def test_determinize_takes_dropout_and_noise_out_of_the_body() -> None:
    scan = scan_of(Determinize()(modgraph.loads(BODY).ir))
    assert not any("dropout" in node.name for node in scan.region.graph)
    assert scan.stacked[1] == Result("helper.h.add")
    assert "normal_noise" not in str(Determinize()(modgraph.loads(GRU).ir))


def test_only_the_choice_in_a_scan_is_computed_in_training_and_in_a_bundle() -> None:
    graph = modgraph.loads(TWO_SCANS).ir
    for exportable in (False, True):
        lowerings_of = [each.name for each in choices(Lower(exportable=exportable)(graph)).values()]
        assert (lowerings_of.count("gathered"), lowerings_of.count("grouped")) == (2, 2)


def test_in_a_scan_weights_are_taken_by_index_where_they_are_few() -> None:
    def lowerings_of(hidden: int) -> tuple[str, str]:
        graph = modgraph.loads(GRU, hidden=hidden).ir
        found = [choices(Lower(exportable=each)(graph)).values() for each in (False, True)]
        training, bundled = (next(each.name for each in lowerings_of) for lowerings_of in found)
        return training, bundled

    assert lowerings_of(6) == ("gathered", "gathered")
    assert lowerings_of(100) == ("gathered", "grouped")
    assert lowerings_of(300) == ("grouped", "grouped")


def test_what_a_route_records_stays_for_inference() -> None:
    graph = apply_passes(modgraph.loads(GRU).ir, INFERENCE)
    assert set(graph.records()) == set(modgraph.loads(GRU).ir.records())


def test_the_passes_of_inference_change_no_number() -> None:
    model = modgraph.loads(TWO_SCANS).build().eval()
    frames, context, length = torch.randn(3, 5, 3), torch.randn(3, 4), torch.tensor([5, 0, 3])
    expected, found = (each(frames, context, length) for each in (model, deterministic(model)))
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-6, rtol=0)


def test_a_pool_grows_inside_a_scan_and_types_downstream_follow() -> None:
    declared = GRU.replace("linear(hidden)", "linear(hidden) grow transition[2]", 1)
    assert grow(modgraph.loads(GRU).ir, "transition", 2) == modgraph.loads(declared).ir
    text = """model m(added=0) { input x: float[time, 4] pool p[2] = linear(4) grow p[added]
      u = x -> last -> p
      scan x as v with h: float[4] { h = h + (v -> p -> mean) + (u -> mean) yield h yield v -> p } as s, t
      output s output t }"""
    grown = grow(modgraph.loads(text).ir, "p", 1)
    assert grown == modgraph.loads(text, added=1).ir
    assert [type_.dimensions for type_ in scan_of(grown).types] == [("time", 4), ("time", 3, 4)]
    with pytest.raises(Misfit, match="its next value would be"):
        rows = "scan x as v with h: float[2, 4] { h = v -> p yield h } as s output s"
        grow(modgraph.loads(f"model m() {{ input x: float[time, 4] pool p[2] = linear(4) {rows} }}").ir, "p", 1)
