"""Loops that end by a value, in ONNX Runtime: one Loop node that stops early, decisions as in torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import modgraph
from modgraph.backends.torch import Model
from tests.backends.onnx.test_scan import agree, nodes_of, randomised

ROUTED = """model m() { input x: float[time, 4] pool p[3] = linear(4) -> tanh router r = linear(k=2)
  scan 0..7 as n with h: float[time, 4] = x, t: float[time] { h = h + (h -> p by r)
    t = t + 0.2 + (h -> linear(1) -> sigmoid -> sum(axis=-1)) yield (h, t + n) } until t > 1.1 as y, rounds
  output y output rounds }"""
READ = """model m() { input x: float[time, 3] input start: float[4]
  scan x as v with h: float[4] = start { h = (h, v) -> concat -> linear(4) -> tanh yield (h, v) }
  until (h -> max(axis=-1)) > 0.9 as h, word
  output h output word }"""


def count_rounds(path: Path, inputs: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]) -> int:
    """How many rounds ONNX Runtime computes: what the loop counts, as an output of its own."""
    model = onnx.load(path)
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    model.graph.output.append(onnx.helper.make_tensor_value_info(loop.output[0], onnx.TensorProto.INT64, []))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return int(session.run([loop.output[0]], inputs)[0])


def ending(bias: float) -> Model:
    model = randomised(modgraph.loads(ROUTED))
    with torch.no_grad():
        model.get_parameter("y.t.linear.bias").fill_(bias)
    return model


@pytest.mark.usefixtures("trace_once")
def test_it_is_one_loop_that_stops_when_all_have_ended(tmp_path: Path) -> None:
    found = []
    for bias in (30.0, 3.0, -30.0):
        model, path = ending(bias), tmp_path / f"{bias}.onnx"
        modgraph.export(model, path, routing=True)
        agree(model, path)
        x, lengths = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32), np.array([4, 2])
        found.append(count_rounds(path, {"x": x, "time_length": lengths}))
    assert found[0] == 1 < found[1] < 6 == found[2], found


@pytest.mark.usefixtures("trace_once")
def test_a_bundle_without_routing_carries_no_records(tmp_path: Path) -> None:
    model = ending(0.0)
    carried = {}
    for routing in (True, False):
        path = tmp_path / f"{routing}.onnx"
        modgraph.export(model, path, routing=routing)
        agree(model, path, routing)
        (loop,) = (node for node in nodes_of(path) if node.op_type == "Loop")
        carried[routing] = len(loop.output)
    assert carried[False] == 6, "the counter, who goes on, two states, two yields"
    assert carried[True] == 6 + len(model.routing_results())


def test_a_sequence_is_read_until_a_word(tmp_path: Path) -> None:
    model = randomised(modgraph.loads(READ))
    modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx")
