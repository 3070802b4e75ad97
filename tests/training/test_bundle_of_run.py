"""`eval RUN --bundle FILE`: only a bundle of that run is measured, and everything told is of its outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from modgraph_runtime import Bundle
from modgraph_runtime.integrity import trailer
from onnx import numpy_helper

from modgraph.cli import main
from modgraph.training import load_run
from tests.training.conftest import begin, go_on

Told = dict[str, Any]


@pytest.fixture
def run(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A run, and its bundle in the same folder."""
    begin(spec, tmp_path / "run", train__epochs=2)
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "run.onnx")]) == 0
    capsys.readouterr()
    return tmp_path / "run"


def evaluated(run: Path, *arguments: str, capsys: pytest.CaptureFixture[str]) -> Told:
    assert main(["eval", str(run), "--json", *arguments]) == 0
    found: Told = json.loads(capsys.readouterr().out)
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


def test_details_are_of_the_bundle(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = with_another_bias(tmp_path / "run.onnx", tmp_path / "other.onnx")
    found = evaluated(run, "--detail", "--bundle", str(bundle), capsys=capsys)
    arrays = load_run(run).test_data()["test"].values
    predicted = Bundle(bundle).run({"image": arrays["image"]})["logits"].argmax(-1)
    matrix = np.zeros((10, 10), int)
    np.add.at(matrix, (arrays["label"], predicted), 1)
    assert found["test.label.confusion"] == matrix.tolist()
    assert found["test.accuracy"] == pytest.approx(matrix.trace() / matrix.sum())
    plain = evaluated(run, "--detail", capsys=capsys)
    assert plain["test.label.confusion"] != matrix.tolist()
    same = evaluated(run, "--detail", "--bundle", str(tmp_path / "run.onnx"), capsys=capsys)
    assert same == {name: plain[name] for name in same}
    assert main(["eval", str(run), "--detail", "--bundle", str(bundle)]) == 0
    assert "true class by row" in capsys.readouterr().out


def refused(run: Path, bundle: Path, what: str, capsys: pytest.CaptureFixture[str], *more: str) -> None:
    assert main(["eval", str(run), "--bundle", str(bundle), *more]) == 1
    told = capsys.readouterr().err
    assert "MG607" in told
    assert f'the bundle "{bundle}" holds {what} than the run "{run}"' in told
    assert f"modgraph export {run} -o {bundle}" in told


def test_a_bundle_of_another_run_is_refused(
    run: Path, spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(spec, tmp_path / "second", train__epochs=2, train__seed=1)
    begin(spec, tmp_path / "wider", train__epochs=1, hidden=17)
    for options in ([], ["--int8"]):
        assert main(["export", str(run), "-o", str(tmp_path / "m.onnx"), *options]) == 0
        capsys.readouterr()
        assert evaluated(run, "--bundle", str(tmp_path / "m.onnx"), capsys=capsys)["test.accuracy"] > 0
        refused(tmp_path / "second", tmp_path / "m.onnx", "other weights", capsys)
        refused(tmp_path / "wider", tmp_path / "m.onnx", "another model", capsys)
    refused(tmp_path / "second", tmp_path / "m.onnx", "other weights", capsys, "--unchecked", "--detail")


def test_a_bundle_of_an_earlier_epoch_is_another(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(spec, tmp_path / "run", train__epochs=2, train__keep=9)
    checkpoints = tmp_path / "run/checkpoints"
    last = sorted(checkpoints.iterdir())[-2:]
    contents = {path: path.read_bytes() for path in last}
    for path in last:
        path.unlink()
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "m.onnx")]) == 0
    for path, content in contents.items():
        path.write_bytes(content)
    go_on(tmp_path / "run")
    refused(tmp_path / "run", tmp_path / "m.onnx", "other weights", capsys)


def test_a_damaged_bundle_is_told_by_eval_too(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = (tmp_path / "run.onnx").read_bytes()
    (tmp_path / "run.onnx").write_bytes(content[:-1] + b"g")
    assert main(["eval", str(run), "--bundle", str(tmp_path / "run.onnx")]) == 1
    assert "is damaged" in capsys.readouterr().err
    assert evaluated(run, "--bundle", str(tmp_path / "run.onnx"), "--unchecked", capsys=capsys)["test.accuracy"] > 0
