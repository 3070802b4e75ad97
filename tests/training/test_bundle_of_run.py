"""`eval RUN --bundle FILE`: only a bundle of that run is measured, and everything told is of its outputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from modgraph_runtime import Bundle
from modgraph_runtime.integrity import trailer
from onnx import numpy_helper

from modgraph.cli import main
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, lay_out_run

Metrics = dict[str, Any]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and its bundles, of floats and of eight bits; one of another seed, and one of a wider model."""
    folder = tmp_path_factory.mktemp("runs")
    spec = lay_out_run(folder)
    recipe = spec.with_suffix(".yaml")
    recipe.write_text(recipe.read_text().replace("batch: 50", "batch: 50, metrics: {label: [f1, auc]}"))
    begin(spec, folder / "run", train__epochs=2, train__keep=9)
    begin(spec, folder / "second", train__epochs=1, train__seed=1)
    begin(spec, folder / "wider", train__epochs=1, hidden=17)
    for name, options in (("float", []), ("int8", ["--int8"])):
        assert main(["export", str(folder / "run"), "-o", str(folder / f"{name}.onnx"), *options]) == 0
    return folder


def evaluated(run: Path, *arguments: str, capsys: pytest.CaptureFixture[str]) -> Metrics:
    assert main(["eval", str(run), "--json", *arguments]) == 0
    found: Metrics = json.loads(capsys.readouterr().out)
    return found


def with_another_bias(path: Path, out: Path) -> Path:
    """A bundle that prefers the next class, and says what it always said of itself."""
    proto = onnx.load(path)
    metadata = next(each for each in proto.metadata_props if each.key == "modgraph")
    del proto.metadata_props[:]
    proto.metadata_props.append(metadata)
    bias = next(each for each in proto.graph.initializer if list(each.dims) == [10])
    moved = numpy_helper.to_array(bias) + np.eye(10, dtype=np.float32)[3] * 5
    bias.CopyFrom(numpy_helper.from_array(moved, bias.name))
    content = proto.SerializeToString()
    out.write_bytes(content + trailer(content))
    return out


def test_details_are_of_the_bundle(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, bundle = runs / "run", with_another_bias(runs / "float.onnx", tmp_path / "other.onnx")
    found = evaluated(run, "--detail", "--bundle", str(bundle), capsys=capsys)
    arrays = load_run(run).test_data()["test"].values
    predicted = Bundle(bundle).run({"image": arrays["image"]})["logits"].argmax(-1)
    matrix = np.zeros((10, 10), int)
    np.add.at(matrix, (arrays["label"], predicted), 1)
    assert found["test.label.confusion"] == matrix.tolist()
    assert found["test.accuracy"] == pytest.approx(matrix.trace() / matrix.sum())
    plain = evaluated(run, "--detail", capsys=capsys)
    assert plain["test.label.confusion"] != matrix.tolist()
    same = evaluated(run, "--detail", "--bundle", str(runs / "float.onnx"), capsys=capsys)
    assert same == {name: plain[name] for name in same}
    assert {"test.f1", "test.auc", "test.f1_by_target", "test.labels_by_target"} <= same.keys()
    assert main(["eval", str(run), "--detail", "--bundle", str(bundle)]) == 0
    assert "true class by row" in capsys.readouterr().out


def refused(run: Path, bundle: Path, what: str, capsys: pytest.CaptureFixture[str], *more: str) -> None:
    assert main(["eval", str(run), "--bundle", str(bundle), *more]) == 1
    errors = capsys.readouterr().err
    assert "MG607" in errors
    assert f'bundle "{bundle}" has {what} than run "{run}"' in errors
    assert f"modgraph export {run} -o {bundle}" in errors


@pytest.mark.parametrize("bundle", ["float.onnx", "int8.onnx"])
def test_a_bundle_of_another_run_is_refused(bundle: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluated(runs / "run", "--bundle", str(runs / bundle), capsys=capsys)["test.accuracy"] > 0
    refused(runs / "second", runs / bundle, "other weights", capsys)
    refused(runs / "wider", runs / bundle, "another model", capsys)
    refused(runs / "second", runs / bundle, "other weights", capsys, "--unchecked", "--detail")


def test_a_run_that_is_elsewhere_in_its_training_is_another(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "run", tmp_path / "run")
    for path in sorted((tmp_path / "run/checkpoints").iterdir())[-2:]:
        path.unlink()
    refused(tmp_path / "run", runs / "float.onnx", "other weights", capsys)


def test_eval_reports_a_damaged_bundle_too(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "m.onnx"
    bundle.write_bytes((runs / "float.onnx").read_bytes()[:-1] + b"g")
    assert main(["eval", str(runs / "run"), "--bundle", str(bundle)]) == 1
    assert "is damaged" in capsys.readouterr().err
    found = evaluated(runs / "run", "--bundle", str(bundle), "--unchecked", capsys=capsys)
    assert found["test.accuracy"] > 0
