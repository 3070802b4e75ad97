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
from modgraph.backends.onnx.int8_scales import fit
from modgraph.cli import main
from modgraph.training.bundle_metrics import evaluate_bundle
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests.backends.onnx.test_scan import randomised
from tests.backends.onnx.test_steps import build_writer
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
    mean = np.abs(theirs["logits"] - ours["logits"]).mean() / np.abs(theirs["logits"]).max()
    assert change["means"]["logits"] == pytest.approx(mean, rel=0.01)
    assert change["calibration"]["examples"] == 256
    counts = change["calibration"]["tokens"]["blocks.1.expert"]
    assert sum(counts) == 256 * 17, "each token of the training data chose one module"
    assert change["products"]["weights"] == change["scales"]["fitted"] + change["scales"]["from the largest weight"]
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
    assert "with scales fitted on 256 examples; 2 of routers and 2 others stay float" in text
    assert "% of its largest value, by 0." in text
    assert "of the tokens elsewhere" in text
    assert "MB instead of" in text
    assert main(["run", str(run / "int8.onnx"), "--input", str(run / "tests.npz")]) == 0
    assert "logits [200, 10]" in capsys.readouterr().out
    assert main(["run", str(run / "int8.onnx"), "--info"]) == 0
    assert "rounded to eight bits; test.accuracy 0." in capsys.readouterr().out
    empty_experts = Bundle(run / "int8.onnx").run({"image": np.zeros((1, 1, 8, 8))})["logits"]  # experts without tokens
    assert np.isfinite(empty_experts).all()


def test_an_example_does_not_depend_on_its_batch(run: Path) -> None:
    images = np.load(run / "tests.npz")["image"][:20]
    bundle = Bundle(run / "int8.onnx")
    single = bundle.run({"image": images[:1]})["logits"]
    assert np.allclose(bundle.run({"image": images})["logits"][:1], single, atol=1e-5)
    assert bundle.manifest["int8"]["alone"] < 1e-4


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


@pytest.mark.some(2)
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


# ------------------------------------------------------------ arithmetic


def multiply_in_bytes(x: np.ndarray, weight: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """x·Wᵀ in whole numbers, with a scale for each row of both."""
    steps = np.abs(x).max(-1, keepdims=True) / 127
    rounded = np.clip(np.rint(weight / scale[:, None]), -127, 127)
    return (np.rint(x / steps).astype(int) @ rounded.T.astype(int)) * steps * scale


def test_a_product_is_one_of_whole_numbers_with_a_scale_for_each_row(tmp_path: Path) -> None:
    model = modgraph.loads("model m() { input x: float[5, 12] y = x -> linear(9) output y }").build(seed=1)
    few = {"x": np.random.default_rng(0).standard_normal((4, 5, 12)).astype(np.float32)}
    modgraph.export(model, tmp_path / "m.onnx", int8=True, calibration={"x": few["x"][:1]})  # too few values to fit
    weight, bias = (each.numpy() for each in model.state_dict().values())
    expected = multiply_in_bytes(few["x"], weight, np.abs(weight).max(1) / 127) + bias
    found = Bundle(tmp_path / "m.onnx").run(few)["y"]
    assert np.allclose(found, expected, atol=1e-4)
    assert np.abs(found - (few["x"] @ weight.T + bias)).max() > 1e-3, "it is rounded"


def test_fitted_scales_are_nearer_on_other_values_of_the_same_kind() -> None:
    random = np.random.default_rng(0)
    weight = random.standard_t(3, (96, 20)).astype(np.float32)
    mixed = random.standard_normal((96, 96)) @ np.diag(random.exponential(size=96))
    values, others = (np.maximum(random.standard_normal((400, 96)) @ mixed, 0).astype(np.float32) for _ in range(2))

    def error(sample: np.ndarray) -> float:
        bytes_, scales = fit(weight, sample)
        return float(np.square(others @ ((bytes_.astype(int) - 128) * scales) - others @ weight).mean())

    assert error(values) < 0.9 * error(values[:0])


GATHERED = """
model m() {
  input x: float[5, 8]
  pool p[64] = linear(10, bias=false) -> relu -> linear(8, bias=false)
  best = x -> linear(p) -> top_k_indices(2, into="slot")
  gates = x -> linear(2) -> softmax
  router r = chosen_ids(slots=1)
  y = x -> p by r(best, gates)
  output y
}
"""
ROUTED = """
model m() {
  input x: float[5, 8]
  pool p[3] = linear(10) -> relu -> linear(8)
  scores = x -> linear(12) -> tanh -> linear(p)
  y = x -> p by ((scores, scores -> top_k(1)) -> masked_softmax)
  output y
}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
def test_weights_gathered_by_index_are_stored_in_bytes(tmp_path: Path) -> None:
    model = modgraph.loads(GATHERED).build()
    report = modgraph.export(model, tmp_path / "m.onnx", int8=True)
    rounding = report.change.rounding  # type: ignore[union-attr]
    assert len(rounding.gathered) == 2 * 64
    stored = [onnx.numpy_helper.to_array(each) for each in onnx.load(tmp_path / "m.onnx").graph.initializer]
    assert sorted(each.shape for each in stored if each.dtype == np.uint8 and each.ndim == 3) == [
        (64, 8, 10),
        (64, 10, 8),
    ]
    assert not [each for each in stored if each.dtype == np.float32 and each.size > 1000]
    assert report.change.outputs["y"] < 0.03  # type: ignore[union-attr]
    assert sum(rounding.tokens["p"]) == 64 * 5 * 2


@pytest.mark.usefixtures("trace_once")
def test_a_module_without_calibration_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = modgraph.loads(ROUTED).build(seed=3)
    one = {"x": np.tile(np.random.default_rng(0).standard_normal(8).astype(np.float32), (40, 5, 1))}
    report = modgraph.export(model, tmp_path / "m.onnx", int8=True, calibration=one)
    (counts,) = report.change.rounding.tokens.values()  # type: ignore[union-attr]
    reached = [at for at, count in enumerate(counts) if count]
    assert len(reached) == 1
    others = ", ".join(str(at) for at in range(3) if at not in reached)
    (warning,) = [each for each in report.warnings if each.code == "MG732"]
    assert f'no calibration data reached {others} of pool "p"' in str(warning)
    manifest = json.loads((tmp_path / "m.json").read_text())["int8"]
    assert manifest["calibration"]["unreached"] == {"p": [at for at in range(3) if at not in reached]}
    assert manifest["scales"] == {"fitted": 2, "from the largest weight": 4}


@pytest.mark.usefixtures("trace_once")
def test_what_only_a_choice_depends_on_stays_float(tmp_path: Path) -> None:
    report = modgraph.export(modgraph.loads(ROUTED).build(), tmp_path / "m.onnx", int8=True)
    assert report.change.rounding.exact["routers"] == ("scores.linear.weight", "scores.linear2.weight")  # type: ignore[union-attr]
    assert report.change.routes == {"p": 0.0}  # type: ignore[union-attr]


# ------------------------------------------------------------ one token after another


@pytest.mark.slow
def test_a_stepwise_bundle_writes_what_its_manifest_says(tmp_path: Path, traces: Path) -> None:
    model = build_writer()
    words = np.random.default_rng(0).integers(0, 12, (5, 10))
    with shared_traces(traces):
        modgraph.export(model, tmp_path / "float.onnx", stepwise=True, examples={"words": words})
        report = modgraph.export(model, tmp_path / "int8.onnx", stepwise=True, int8=True, examples={"words": words})
    exact, rounded = Bundle(tmp_path / "float.onnx"), Bundle(tmp_path / "int8.onnx")
    written = rounded.manifest["int8"]["written"]
    old, new = (np.array(each.generate(words.tolist(), tokens=written["tokens"])) for each in (exact, rounded))
    assert written["prompts"] == 5
    assert written["tokens"] == 30, "of 40 positions"
    assert written["equal"] == pytest.approx((old == new).mean(), abs=1e-3)
    first = [30 if (a == b).all() else int((a != b).argmax()) for a, b in zip(old, new, strict=True)]
    assert written["before"] == pytest.approx(np.mean(first))
    assert "of 30 likeliest tokens after 5 prompts are equal" in str(report)
