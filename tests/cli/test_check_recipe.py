"""`modgraph check` diagnoses a spec with its recipe, as a training would before it begins, and without numpy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.metrics.target_metrics import REQUESTED
from modgraph.recipes.metrics import REQUESTED_METRICS

SPEC = """model m(width=4) {
  input x: float[2]
  target y: class[3]
  logits = x -> linear(width) -> linear(3)
  output logits
  loss cross_entropy(logits, y)
}
"""
RECIPE = "data: {name: npz, train: x.npz}\ntrain: {epochs: 2}\n"
WRONG = {
    "an unknown section": "date: {name: npz}\n" + RECIPE,
    "an unknown key": RECIPE.replace("epochs", "epoch"),
    "a value out of range": RECIPE.replace("2", "-2"),
    "an unknown data set": RECIPE.replace("npz,", "npy,"),
    "a data set whose keys contradict each other": "data: {name: rotated_digits, held_out: 76}",
    "a missing key of the data": "data: {name: npz}",
    "a misspelt parameter": RECIPE + "model: {widht: 3}\n",
    "a target that is none": RECIPE.replace("epochs: 2", "labels: {z: {weights: balanced}}"),
    "a metric of another kind": RECIPE.replace("epochs: 2", "metrics: {y: mae}"),
    "no YAML": "data: [1, 2",
    "a start from two sources": RECIPE + "start: {run: a, weights: b}\n",
    "a parameter of the wrong type": RECIPE + "model: {width: wide}\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.mod").write_text(SPEC)
    (tmp_path / "m.yaml").write_text(RECIPE)
    (tmp_path / "x.npz").touch()
    monkeypatch.chdir(tmp_path)


def test_a_sound_pair_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "m.mod"]) == 0
    assert capsys.readouterr() == ("", ""), "whether the data fit is left to a training"


def test_mistakes_of_both_come_at_once_each_at_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mod").write_text(SPEC.replace("-> linear(3)", "-> liner(3)"))
    Path("m.yaml").write_text("data: {name: npz, train: x.npz}\ntrain:\n  epochs: many\n  bach: 3\n")
    assert main(["check", "m.mod"]) == 1
    errors = capsys.readouterr().err
    for place in ("m.mod:4:34", "m.yaml:3:11", "m.yaml:4:3"):
        assert f"--> {place}" in errors, "file, line and column"
    assert errors.count("^") >= 3, "each with a caret"
    assert errors.rstrip().endswith("3 errors")


@pytest.mark.parametrize("what", WRONG)
def test_check_reports_what_a_training_reports(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.yaml").write_text(WRONG[what])
    assert main(["check", "m.mod"]) == 1
    checked = capsys.readouterr().err
    assert main(["train", "m.mod"]) == 1
    assert checked == capsys.readouterr().err
    assert "m.yaml:" in checked or "m.mod:" in checked, "it has a place"


MISSING = {
    "a data file": ("data: {name: npz, train: gone.npz}", "data.train", "m.yaml:1:19"),
    "a second data file": ("data: {name: npz, train: x.npz, test: gone.npz}", "data.test", "m.yaml:1:33"),
    "a folder": ("data: {name: class_folders, train: gone}", "data.train", "m.yaml:1:29"),
    "data of a sequence of tasks": (
        "data: {name: task_sequence, of: {name: npz, train: gone.npz}, tasks: {a: {classes: [0, 1]}}}",
        "data.of.train",
        "m.yaml:1:45",
    ),
    "a run": (RECIPE + "start: {run: gone}", "start.run", "m.yaml:3:9"),
    "weights": (RECIPE + "start: {weights: gone.pt, map: map.yaml}", "start.weights", "m.yaml:3:9"),
}


@pytest.mark.parametrize("what", MISSING)
def test_a_file_that_a_training_would_miss_is_a_caution(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, key, place = MISSING[what]
    Path("m.yaml").write_text(recipe)
    Path("map.yaml").write_text("weights: {a.*: logits.linear.*, b.*: logits.linear2.*}")
    assert main(["check", "m.mod"]) == 0, "the data may stand on the machine that trains"
    printed = capsys.readouterr().err
    assert "warning[MG528]" in printed and f"--> {place}" in printed, printed
    assert str(Path.cwd() / "gone") in printed and f"-s {key}=PATH" in printed, "where it was looked for"
    assert main(["train", "m.mod"]) == 1, "and a training stops there"


def test_a_missing_map_of_weights_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.yaml").write_text(RECIPE + "start: {weights: gone.pt, map: gone.yaml}")
    assert main(["check", "m.mod"]) == 1
    printed = capsys.readouterr().err
    assert "gone.yaml" in printed and "gone.pt" in printed, "the weights are a caution beside it"


def test_another_recipe_and_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.yaml").write_text(RECIPE.replace("2", "0"))
    assert main(["check", "m.mod", "--recipe", "other.yaml"]) == 1
    assert "train.epochs" in capsys.readouterr().err
    assert main(["check", "m.mod", "--recipe", "other.yaml", "-s", "train.epochs=3"]) == 0
    assert main(["check", "m.mod", "-s", "train.epochs=0", "-s", "width=x"]) == 1
    errors = capsys.readouterr().err
    assert "2 errors" in errors, "a parameter and a key"
    assert main(["check", "m.mod", "--recipe", "none.yaml"]) == 1
    assert 'cannot find the recipe "none.yaml"' in capsys.readouterr().err


def test_the_parameters_of_the_recipe_are_those_of_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.yaml").write_text(RECIPE + "model: {width: 0}\n")
    assert main(["check", "m.mod"]) == 1
    assert "width" in capsys.readouterr().err
    assert main(["check", "m.mod", "-s", "width=3"]) == 0


def test_a_file_of_blocks_needs_no_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.mod").write_text("block twice(d) { input x: float[n] y = x -> linear(d) output y }")
    Path("b.yaml").write_text("nothing: of this\n")
    assert main(["check", "b.mod"]) == 0
    assert "b.mod: ok" in capsys.readouterr().out


def test_neither_torch_nor_numpy_is_imported() -> None:
    script = "import sys; from modgraph.cli import main; code = main(['check', 'm.mod']); "
    script += (
        "heavy = {'torch', 'numpy', 'PIL', 'onnx', 'tqdm'} & set(sys.modules); assert not code and not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_spec_without_a_recipe_imports_nothing_of_trainings() -> None:
    Path("m.yaml").unlink()
    script = "import sys; from modgraph.cli import main; code = main(['check', 'm.mod']); "
    script += "assert not {'modgraph.data', 'modgraph.training', 'yaml'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_metrics_that_a_recipe_may_ask_for_are_those_that_there_are() -> None:
    assert {name: kind.dtype for name, kind in REQUESTED.items()} == REQUESTED_METRICS
