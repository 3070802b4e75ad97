"""The ES module writes on as the Python runtime does, step by step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from modgraph_runtime import Bundle
from modgraph_runtime.generation import Generator, Sampler

import modgraph
from tests.backends.onnx.test_int8 import ROUTED
from tests.backends.onnx.test_steps import OTHER, PLAIN, PROMPTS, build_writer
from tests.traces import shared_traces
from tests.web.test_module import all_pass, needs_node


@needs_node
def test_bundles_write_on_as_in_the_runtime(tmp_path: Path, traces: Path) -> None:
    with shared_traces(traces):
        modgraph.export(build_writer(), tmp_path / "m.onnx", stepwise=True, routing=True)
        modgraph.export(modgraph.loads(OTHER).build(seed=2), tmp_path / "other.onnx", stepwise=True)
        modgraph.export(build_writer(), tmp_path / "int8.onnx", stepwise=True, routing=True, int8=True)
        modgraph.export(modgraph.loads(PLAIN).build(), tmp_path / "plain.onnx")
        modgraph.export(modgraph.loads(ROUTED).build(seed=3), tmp_path / "routed.onnx", int8=True)
    bundle = Bundle(tmp_path / "m.onnx", threads=1)
    one = np.full((1, 5, 8), 0.5, np.float32)  # two of three modules get no token
    words = np.random.default_rng(0).integers(0, 12, (2, 7))
    streamed = [*Generator(bundle).run(PROMPTS, 3, Sampler(), routing=True)]
    cases = {
        **{each.stem if each.stem != "m" else "bundle": str(each) for each in tmp_path.glob("*.onnx")},
        "prompts": PROMPTS,
        "written": bundle.generate(PROMPTS, tokens=30),
        "rounded": Bundle(tmp_path / "int8.onnx", threads=1).generate(PROMPTS, tokens=30),
        "one": Bundle(tmp_path / "routed.onnx", threads=1).run({"x": one})["y"].ravel().tolist(),
        "streamed": [[each.tokens, each.modules] for each in streamed],
        "words": words.tolist(),
        "logits": bundle.run({"words": words})["logits"].ravel().tolist(),
    }
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    all_pass("steps.test.js", MODGRAPH_CASES=tmp_path / "cases.json")
