"""Weights of eight bits: what is rounded, what that changes, and that the bundle runs like any other."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from modgraph_runtime import Bundle

import modgraph
from modgraph.cli import main
from modgraph.training.bundle_metrics import evaluate_bundle
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests.backends.onnx.test_scan import randomised
from tests.examples import GRU, ROUTER_EXAMPLES, ROUTERS_IN_SCAN, SEQUENCE, TRANSFORMER, TWO_SCANS
from tests.traces import shared_traces

RECIPE = """
model: {{dim: 16, depth: 2, width: 8, experts: 4}}
data: {{name: npz, train: {folder}/digits.npz, test: {folder}/tests.npz}}
train: {{epochs: 3, batch: 50, optimizer: {{name: adam, lr: 0.01}}}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Path:
    """A trained mixture, and beside it its float and int8 bundles, and what was told of them."""
    from sklearn.datasets import load_digits

    folder = tmp_path_factory.mktemp("int8")
    data = load_digits()
    images = data.images[:, None] / 16
    np.savez(folder / "digits.npz", image=images[:600], label=data.target[:600])
    np.savez(folder / "tests.npz", image=images[600:800], label=data.target[600:800])
    (folder / "digits.yaml").write_text(RECIPE.format(folder=folder))
    small = {"size": 8, "patch": 2}
    with start_run("specs/gmoe_digits.mod", str(folder / "digits.yaml"), small, str(folder / "run")) as engine:
        finish(engine)
    for name, more in (("float", []), ("int8", ["--int8"])):
        with contextlib.redirect_stdout(io.StringIO()) as text, shared_traces(traces):
            assert main(["export", str(folder / "run"), "-o", str(folder / f"{name}.onnx"), "--routing", *more]) == 0
        (folder / f"{name}.txt").write_text(text.getvalue())
    return folder


def test_the_change_is_that_of_the_test_data(run: Path) -> None:
    exact, rounded = Bundle(run / "float.onnx"), Bundle(run / "int8.onnx")
    change = json.loads((run / "int8.json").read_text())["int8"]
    assert change == rounded.manifest["int8"]
    assert "int8" not in exact.manifest
    tests = load_run(run / "run").test_data()["test"]
    graph = load_run(run / "run").graph
    for key, name in (("float", "float.onnx"), ("int8", "int8.onnx")):
        (accuracy,) = evaluate_bundle(Bundle(run / name), graph, tests).values()
        assert change["metrics"]["test.accuracy"][key] == pytest.approx(accuracy)
    assert change["metrics"]["test.accuracy"]["int8"] > change["metrics"]["test.accuracy"]["float"] - 0.05
    image = {"image": tests.values["image"]}
    theirs, ours = exact.run(image, routing=True), rounded.run(image, routing=True)
    (name,) = change["routes"]
    moved = (theirs[f"{name}.selected"] != ours[f"{name}.selected"]).any(-1).mean()
    assert change["routes"][name] == pytest.approx(moved, rel=0.01)
    assert 0 < moved < 0.1
    difference = np.abs(theirs["logits"] - ours["logits"]).max() / np.abs(theirs["logits"]).max()
    assert change["outputs"]["logits"] == pytest.approx(difference, rel=0.01)
    assert 0 < change["alone"] < 0.1
    assert change["examples"] == 200
    assert change["bytes"]["int8"] < change["bytes"]["float"]


def test_experts_are_rounded_and_routers_are_not(run: Path) -> None:
    stored = [onnx.numpy_helper.to_array(each) for each in onnx.load(run / "int8.onnx").graph.initializer]
    weights = {name: each.numpy() for name, each in load_run(run / "run").model().state_dict().items()}
    exact = {
        name
        for name, weight in weights.items()
        if weight.ndim == 2 and any(np.array_equal(each, layout) for each in stored for layout in (weight, weight.T))
    }
    gates = {name for name in weights if ".gate." in name and weights[name].ndim == 2}
    assert exact & gates == gates
    assert not {name for name in exact if ".expert." in name or ".attn." in name or "head" in name}
    assert sum(each.dtype == np.uint8 and each.ndim == 2 for each in stored) >= 2 * 4


def test_it_is_reported_and_runs_like_any_bundle(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (run / "int8.txt").read_text()
    assert "int8: test.accuracy 0." in text
    assert "ONNX Runtime agrees with torch before rounding at batch " in text
    assert "before rounding" not in (run / "float.txt").read_text()
    assert "int8: scales follow the batch, so the other examples in it move an example by " in text
    assert "of the tokens elsewhere" in text
    assert "MB instead of" in text
    assert main(["run", str(run / "int8.onnx"), "--input", str(run / "tests.npz")]) == 0
    assert "logits [200, 10]" in capsys.readouterr().out
    assert main(["run", str(run / "int8.onnx"), "--info"]) == 0
    assert "rounded to eight bits; test.accuracy 0." in capsys.readouterr().out
    empty_experts = Bundle(run / "int8.onnx").run({"image": np.zeros((1, 1, 8, 8))})["logits"]  # experts without tokens
    assert np.isfinite(empty_experts).all()


def test_examples_run_one_by_one_do_not_depend_on_their_batch(run: Path) -> None:
    images = np.load(run / "tests.npz")["image"][:20]
    bundle = Bundle(run / "int8.onnx")
    single = bundle.run({"image": images[:1]})["logits"]
    assert (bundle.run({"image": images}, chunk=1)["logits"][:1] == single).all()
    assert (bundle.run({"image": images})["logits"][:1] != single).any(), "scales follow the batch"


def test_a_diff_notes_rounding(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact, rounded = str(run / "float.onnx"), str(run / "int8.onnx")
    assert main(["diff", exact, rounded]) == 0
    assert "note: int8: no → yes" in capsys.readouterr().out
    assert main(["diff", rounded, exact, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["int8: yes → no"]
    assert main(["diff", rounded, rounded]) == 0
    assert "int8" not in capsys.readouterr().out.partition("\n")[2], "nothing is rounded in between"


BY = "model m() {{ input x: float[5, 6] pool p[3] = linear(4) router r = {} y = x -> p by r output y }}"
ROUNDED = {
    "attention": "model m() { input x: float[5, 6] y = x -> attention(2) output y }",
    "transformer": TRANSFORMER,
    "sequence": SEQUENCE,
    "gru": GRU,
    "two scans": TWO_SCANS,
    "every_module": ROUTER_EXAMPLES["every_module"],
    **{name: BY.format(name) for name in ("agreement(2)", "noisy_top_k(k=2)", "cosine(k=2, width=4)")},
    "in a scan": ROUTERS_IN_SCAN["every_module"],
}


SLOW = ("two scans",)  # everything in it is in another


@pytest.mark.usefixtures("trace_once")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in ROUNDED]
)
def test_whatever_multiplies_with_weights_stays_close(name: str, tmp_path: Path) -> None:
    program = modgraph.loads(ROUNDED[name])
    model = randomised(program) if "scan" in ROUNDED[name] else program.build()
    report = modgraph.export(model, tmp_path / "m.onnx", int8=True)
    assert report.change is not None
    assert max(report.change.outputs.values()) < 0.1
    assert b"MatMulInteger" in (tmp_path / "m.onnx").read_bytes()


@pytest.mark.usefixtures("trace_once")
def test_a_weight_that_is_read_in_several_ways_is_rounded_where_it_multiplies(tmp_path: Path) -> None:
    report = modgraph.export(modgraph.load("specs/smn.mod", iterations=1).build(), tmp_path / "smn.onnx", int8=True)
    assert report.change is not None
    assert report.change.outputs["logits"] < 0.05
    assert report.change.routes == {}  # a soft router chooses nothing


@pytest.mark.parametrize(
    "text",
    [
        "input x: float[3, 8, 8] y = x -> conv(4, kernel=3) -> relu output y",
        "input x: float[5, 6] pool p[3] = scale router r = linear y = x -> p by r output y",
    ],
)
def test_a_model_without_such_weights_is_reported(text: str, tmp_path: Path) -> None:
    model = modgraph.loads(f"model plain() {{ {text} }}").build()
    with pytest.raises(modgraph.ModgraphError) as caught:
        modgraph.export(model, tmp_path / "m.onnx", int8=True)
    assert [each.code for each in caught.value.diagnostics] == ["MG712"]
    assert list(tmp_path.iterdir()) == []
