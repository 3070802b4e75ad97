"""Sums over the modules of a token's choice, in ONNX Runtime on several threads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from modgraph_runtime import Bundle

import modgraph

SPEC = """
model sums {
  input  x: float[time, 64]
  pool   expert[4] = linear(256)
  router pick = noisy_top_k(2)
  y = x -> expert by pick
  output y
}
"""


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for each in node.attribute:
            if each.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(each.g)


def test_threads_lose_no_message_of_a_token(tmp_path: Path) -> None:
    """Threads of ScatterND add to the same element at once: one run in four lost messages at these sizes."""
    path = tmp_path / "sums.onnx"
    modgraph.export(modgraph.loads(SPEC).build(seed=0), path)
    assert not any(node.op_type == "ScatterND" for node in nodes_of(onnx.load(path).graph))
    bundle, x = Bundle(path, threads=2), np.random.default_rng(0).normal(size=(64, 16, 64)).astype(np.float32)
    expected = Bundle(path, threads=1).run({"x": x})["y"]
    assert all(np.array_equal(bundle.run({"x": x})["y"], expected) for _ in range(40))
