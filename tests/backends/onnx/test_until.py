"""Loops that end by a value, in ONNX Runtime: one Loop node that stops early, decisions as in torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import modgraph
from tests.backends.onnx.test_scan import agree, nodes_of, randomised

ROUTED = """model m() { input x: float[time, 4] pool p[3] = linear(4) -> tanh router r = linear(k=2)
  scan 0..7 as n with h: float[time, 4] = x, t: float[time] { h = h + (h -> p by r)
    t = t + 0.2 + (h -> linear(1) -> sigmoid -> sum(axis=-1)) yield (h, t + n) } until t > 1.1 as y, rounds
  output y output rounds }"""
READ = """model m() { input x: float[time, 3] input start: float[4]
  scan x as v with h: float[4] = start { h = (h, v) -> concat -> linear(4) -> tanh yield (h, v) }
  until (h -> max(axis=-1)) > 0.9 as h, word
  output h output word }"""


def count_rounds(path: Path, bias: float, inputs: dict[str, Any]) -> int:
    """How many rounds ONNX Runtime computes with a bias of the halting unit: what the loop counts."""
    model = onnx.load(path)
    (halting,) = (each for each in model.graph.initializer if each.name == "y.t.linear.bias")
    halting.CopyFrom(onnx.numpy_helper.from_array(np.array([bias], np.float32), halting.name))
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    model.graph.output.append(onnx.helper.make_tensor_value_info(loop.output[0], onnx.TensorProto.INT64, []))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return int(session.run([loop.output[0]], inputs)[0])


@pytest.mark.usefixtures("trace_once")
def test_it_is_one_loop_that_stops_when_all_have_ended_and_carries_no_records_in_vain(tmp_path: Path) -> None:
    model, carried, path = randomised(modgraph.loads(ROUTED)), [], tmp_path / "m.onnx"
    for routing in (True, False):
        modgraph.export(model, path, routing=routing, force=True)
        agree(model, path, routing)
        (loop,) = (node for node in nodes_of(path) if node.op_type == "Loop")
        carried.append(len(loop.output))
    assert carried == [6 + len(model.routing_results()), 6], "the counter, who goes on, two states, two yields"
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32), "time_length": np.array([4, 2])}
    few, some, most = (count_rounds(path, bias, inputs) for bias in (30.0, 3.0, -30.0))
    assert few == 1 < some < most == 6


def test_a_sequence_is_read_until_a_word(tmp_path: Path) -> None:
    model = randomised(modgraph.loads(READ))
    modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx")
