"""Exports of chosen outputs: what they compute, what goes with the others, and what is printed of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle, BundleError

import modgraph
from modgraph.backends.onnx import exportable
from modgraph.backends.onnx.manifest import find_outputs_without
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ir import weights_of
from modgraph.passes import INFERENCE, apply_passes, build_pipeline_behind, drop_outputs
from modgraph.training.stored_run import load_run
from tests.small_runs import begin

SPEC = """
router pick() for expert {
  input u: float[senders, dim]
  scores = u -> linear(expert, name="score")
  chosen = scores -> top_k(1)
  novelty = scores -> abs
  record gates = chosen, choice = chosen, scores, novelty
  y = u -> expert by chosen
  output y
}

model two(hidden=3, tasks=["a", "b"]) {
  input x: float[time, 4]
  input hint: float[place, 2]
  pool cell[2] = linear(hidden) -> tanh
  scan x as xt with h: float[hidden] {
    h = (h + (xt -> cell -> mean(axis=cell))) -> tanh
    yield h
  } as u
  own["a"] = u
  own["b"] = u + (hint -> linear(hidden) -> mean(axis="place"))
  for k in tasks {
    target y[k]: class[time, 3]
    pool expert[2] = linear(hidden) -> relu
    router choose = pick
    z[k] = own[k] -> expert by choose
    logits[k] = (own[k], z[k]) -> concat -> linear(3)
    output logits[k]
    loss task[k] = cross_entropy(logits[k], y[k])
  }
}
"""
RECIPE = """
data: {{name: npz, train: {folder}/train.npz, test: {folder}/test.npz}}
train: {{epochs: 1, batch: 8, optimizer: {{name: adam, lr: 0.01}}}}
"""
OF_B = {"hint", "place_length"}


def sample_arrays(count: int, steps: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = {f"y.{task}": random.integers(3, size=(count, steps)) for task in "ab"}
    lengths = {"time_length": random.integers(1, steps + 1, count), "place_length": random.integers(1, 4, count)}
    x, hint = (random.normal(size=(count, *rest)).astype("float32") for rest in ((steps, 4), (3, 2)))
    return {"x": x, "hint": hint, **lengths, **labels}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two tasks, and bundles of one of them each."""
    folder = tmp_path_factory.mktemp("only")
    for seed, split in enumerate(("train", "test")):
        np.savez(folder / f"{split}.npz", **sample_arrays(16, 5, seed))  # type: ignore[arg-type]
    (folder / "two.mod").write_text(SPEC)
    (folder / "two.yaml").write_text(RECIPE.format(folder=folder))
    begin(folder / "two.mod", folder / "run")
    export = ["export", str(folder / "run"), "-o"]
    assert main([*export, str(folder / "a.onnx"), "--routing", "--only", "logits.a"]) == 0
    assert main([*export, str(folder / "b.onnx"), "--novelty", "--int8", "--only", "*.b"]) == 0
    return folder


@pytest.mark.parametrize("steps", [1, 7, 13])
def test_what_is_left_computes_what_it_did_at_lengths_that_were_never_traced(folder: Path, steps: int) -> None:
    model, arrays = load_run(folder / "run").model(), sample_arrays(9, steps, steps)
    inputs = {name: array for name, array in arrays.items() if not name.startswith("y.")}
    with torch.no_grad():
        computed = model.compute({name: torch.from_numpy(each) for name, each in inputs.items()}, False, True)
    found = Bundle(folder / "a.onnx").run({name: inputs[name] for name in ("x", "time_length")}, routing=True)
    assert [name for name in found if "." in name and name.split(".")[0] == "logits"] == ["logits.a"]
    for name, values in found.items():
        theirs = {**computed.outputs, **computed.routing}[name].numpy()
        np.testing.assert_allclose(values, theirs, atol=1e-5, rtol=1e-4)


def test_a_bundle_has_nothing_that_only_others_need(folder: Path) -> None:
    bundle, graph = Bundle(folder / "a.onnx"), load_run(folder / "run").graph
    manifest = bundle.manifest
    assert {*bundle.inputs} == {"x", "time_length"}
    assert [*bundle.outputs] == ["logits.a"]
    assert {name.split(".")[0] for name in bundle.routing} == {"z"}
    assert all(".b" not in name for name in (*bundle.routing, *manifest["pools"]))
    assert {*manifest["left_out"]["inputs"]} == OF_B
    assert (manifest["left_out"]["outputs"], manifest["left_out"]["targets"]) == (["logits.b"], ["y.b"])
    assert [*manifest["targets"]] == ["y.a"]
    (inference,) = (
        each
        for each in exportable(load_run(folder / "run").model(), ["logits.b"])
        if each.graph.hash() == manifest["hash"]
    )
    assert {name.split(".")[0] for name in inference.state_dict() if "b" in name.split(".")} == set()
    assert manifest["pools"]["expert.a"]["unreached"] == []
    assert apply_passes(graph, build_pipeline_behind(inference.graph, ["logits.b"])) == inference.graph


def test_novelty_and_eight_bits_are_of_what_is_left(folder: Path) -> None:
    bundle = Bundle(folder / "b.onnx")
    assert {*bundle.outputs} == {"logits.b", "novelty.z.b.expert"}
    record = bundle.manifest["int8"]
    assert {*record["metrics"]} == {"test.y.b.accuracy", "test.y.b.perplexity"}
    assert {*record["outputs"]} == {*bundle.outputs}
    assert {*bundle.inputs} >= OF_B


def test_eval_measures_what_the_bundle_has(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(folder / "run"), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert main(["eval", str(folder / "run"), "--json", "--bundle", str(folder / "a.onnx")]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert {*found} == {name for name in whole if ".y.a." in name}
    assert found == pytest.approx({name: whole[name] for name in found}, rel=1e-4)
    assert "the bundle leaves out logits.b" in printed.err


def test_a_file_with_what_goes_with_others_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(folder / "a.onnx"), "--input", str(folder / "test.npz")]) == 0
    printed = capsys.readouterr().out
    assert "hint goes with outputs that this bundle leaves out: ignored" in printed
    assert "logits.a [16, 5, 3]" in printed
    with pytest.raises(BundleError, match="hint"):
        Bundle(folder / "a.onnx").run(dict(np.load(folder / "test.npz")))
    assert main(["run", str(folder / "a.onnx"), "--info"]) == 0
    assert "left out logits.b" in capsys.readouterr().out


def test_others_read_a_bundle_of_some_outputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(folder / "run"), str(folder / "a.onnx")]) == 0
    printed = capsys.readouterr().out
    assert "nor logits.b, which the bundle leaves out" in printed
    assert "values of weights: equal" in printed
    data = ["--recipe", str(folder / "two.yaml")], ["--input", str(folder / "test.npz")]
    for source in data:
        assert main(["trace", str(folder / "a.onnx"), "--json", *source]) == 0
        assert {*json.loads(capsys.readouterr().out)["routes"]} == {"z.a.expert"}


def test_names_that_mean_nothing_are_reported(folder: Path) -> None:
    graph = modgraph.loads(SPEC, "two.mod").ir
    assert find_outputs_without(graph, []) == []
    assert find_outputs_without(graph, ["logits.*"]) == []
    for wrong, help in (
        ("b", "--only logits.b"),
        ("logit.b", 'did you mean "logits.b"?'),
        ("*.c", "logits.a, logits.b"),
    ):
        with pytest.raises(ModgraphError, match="MG841") as caught:
            find_outputs_without(graph, ["logits.a", wrong])
        (diagnostic,) = caught.value.diagnostics
        assert help in diagnostic.advice()


def test_what_needs_no_input_keeps_them() -> None:
    text = """model m() { input x: float[3] weight w: float[2] = zeros output y = x -> linear(2) output w }"""
    graph = apply_passes(modgraph.loads(text, "m.mod").ir, (*drop_outputs(["y"]), *INFERENCE))
    assert [*graph.input_types] == ["x"]
    assert [weight.name for weight in weights_of(graph)] == ["w"]


def test_arrays_ask_what_is_left_how_many_examples_there_are() -> None:
    text = """model m() { input hint: token[9] input x: float[3] constant c: float[3] = [1, 0, 2]
        weight w: float[3] = ones state s: float = ones output y = x * c * w * s output z = hint -> embedding(2) }"""
    graph = apply_passes(modgraph.loads(text, "m.mod").ir, (*drop_outputs(["z"]), *INFERENCE))
    assert [*graph.input_types] == ["x"]
