"""Targets: what trains may read them, what infers may not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph import ModgraphError
from modgraph.elaboration.errors import OutputReadsTarget
from modgraph.ir import Graph, InputNode, InvalidGraph, OutputNode, Result, TargetNode, verify
from modgraph.training.stored_run import load_run
from modgraph.types import floats
from tests.small_runs import begin, lay_out_run

WAYS = {
    "target itself": ("output t", "t"),
    "an op": ("y = x + t -> linear(4) output y", "t -> y.add -> y.linear"),
    "the shorter way": ("y = (x + t -> relu -> tanh) + t output y", "t -> y.add2"),
    "second branch": ("y = (x, t) -> training_or_inference output y", "t -> y.training_or_inference"),
    "gates": (
        "pool p[3] = linear(4) y = x -> p by (t -> linear(p) -> softmax) output y",
        "t -> y.linear -> y.softmax -> y.p",
    ),
}


def reported(body: str, target: str = "float[4]") -> OutputReadsTarget:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ input x: float[4] target t: {target} {body} }}")
    (found,) = caught.value.diagnostics
    assert isinstance(found, OutputReadsTarget), found
    return found


@pytest.mark.parametrize("way", WAYS)
def test_an_output_that_reads_a_target_is_refused_with_the_shortest_way(way: str) -> None:
    body, path = WAYS[way]
    found = reported(body)
    assert found.path == path
    assert ("put the target first" in found.advice()) == (way == "second branch"), found.advice()


def test_a_target_is_followed_through_the_states_of_a_scan() -> None:
    scan = "scan t as v with h: float[4] { h = h + v yield h * h } as s y = x + (s -> mean) output y"
    assert reported(scan, "float[5, 4]").path == "t -> s.v -> s.h.add -> s.yield.multiply -> s -> y.mean -> y.add"


PERMITTED = {
    "a loss": "y = x -> linear(4) output y loss mse(y, t -> linear(4) -> stop_gradient)",
    "the rule of a state": "state s: float[4] = zeros next s = t -> batch_mean y = x + s output y",
    "training alone": "y = ((t, x) -> training_or_inference -> linear(4)) output y loss mse(y, t)",
    "a result of a scan for a loss": (
        "scan time as v with h: float[4], g: float[4] { h = h + v g = g + t yield h yield g } as a, b "
        "y = a -> last output y loss mse(b -> last, t)"
    ),
    "training alone in a scan": (
        "scan time as v with h: float[4] { h = (t, h) -> training_or_inference u = h + v -> linear(4) h = u yield h } "
        "as a y = a -> last output y loss mse(y, t)"
    ),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("what", PERMITTED)
def test_what_only_training_reads_is_needed_only_in_training(what: str, tmp_path: Path) -> None:
    given = "input x: float[4] input time: float[place, 4] target t: float[4]"
    model = modgraph.loads(f"model m() {{ {given} {PERMITTED[what]} }}").build()
    batch = {"x": torch.randn(3, 4), "time": torch.randn(3, 5, 4)}
    targets = {"t": torch.randn(3, 4)}
    assert model.compute(batch | targets).outputs["y"].shape == (3, 4)
    evaluated = model.eval().compute(batch | targets).outputs["y"]
    inferred = model(**batch)
    assert isinstance(inferred, Tensor)
    assert torch.equal(inferred, evaluated), "a target changes what is inferred"
    modgraph.export(model, tmp_path / "m.onnx")
    bundle = Bundle(tmp_path / "m.onnx")
    lengths = {name: np.array([5, 5, 5]) for name in bundle.inputs if name.endswith("_length")}
    found = bundle.run({**{name: each.numpy() for name, each in batch.items() if name in bundle.inputs}, **lengths})
    np.testing.assert_allclose(found["y"], inferred.detach().numpy(), atol=1e-5)


def test_a_training_pass_says_which_target_it_lacks() -> None:
    model = modgraph.loads(
        f"model m() {{ input x: float[4] target t: float[4] {PERMITTED['training alone']} }}"
    ).build()
    with pytest.raises(TypeError, match=r'm needs the target "t": float\[4\]'):
        model(torch.randn(2, 4))
    with pytest.raises(TypeError, match=r'm needs the target "t": float\[4\]'):
        model.eval().compute({"x": torch.randn(2, 4)})


def test_forced_values_train_are_measured_and_are_exported(tmp_path: Path) -> None:
    """What was right is shown while it learns, and what it guessed in evaluation: a metric of what it guessed."""
    spec = lay_out_run(tmp_path)
    text = """
    model forced() {
      input  image: float[1, 8, 8]
      input  hint: float[10]
      target right: float[10]
      target label: class[10]
      seen = (right, hint) -> training_or_inference
      logits = (image -> flatten -> linear(10)) + (seen -> linear(10))
      output logits
      loss cross_entropy(logits, label)
    }
    """
    spec.write_text(text)
    arrays = dict(np.load(spec.with_name("digits.npz")))
    arrays["right"] = np.eye(10, dtype=np.float32)[arrays["label"]]
    arrays["hint"] = np.zeros_like(arrays["right"])
    np.savez(spec.with_name("digits.npz"), **arrays)
    begin(spec, tmp_path / "run", train__epochs=3, train__validation=0.2)
    run, lines = load_run(tmp_path / "run"), (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    last = {line["split"]: line["accuracy"] for line in map(json.loads, lines)}
    assert last["train"] > last["validation"] + 0.1, "evaluation was shown what is right"
    modgraph.export(run.model(), tmp_path / "m.onnx")
    assert Bundle(tmp_path / "m.onnx").inputs.keys() == {"image", "hint"}


def test_a_stored_graph_whose_output_reads_a_target_is_refused() -> None:
    graph = Graph("m")
    graph.add(InputNode(name="x", types=(floats(4),)))
    graph.add(TargetNode(name="t", types=(floats(4),)))
    graph.add(OutputNode(name="output.y", label="y"), {"x": Result("t")})
    with pytest.raises(InvalidGraph, match="reads it in inference"):
        verify(graph)
