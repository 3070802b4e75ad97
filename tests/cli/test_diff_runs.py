"""`modgraph diff` of two runs: recipes, data, metrics, costs and routing, read without torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modgraph
from modgraph.cli import main
from modgraph.training.run import finish, start_run
from tests.small_runs import begin, interrupt_at, lay_out_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one spec: of two epochs, of one, and of one on other data; one left in its second epoch; a copy."""
    folder = tmp_path_factory.mktemp("runs")
    spec = lay_out_run(folder)
    arrays = dict(np.load(folder / "digits.npz"))
    np.savez(folder / "fewer.npz", **{name: array[:500] for name, array in arrays.items()})
    small = {"model__hidden": 4}
    begin(spec, folder / "long", train__epochs=2, **small)
    begin(spec, folder / "short", train__epochs=1, **small)
    begin(spec, folder / "fewer", train__epochs=1, data__train=str(folder / "fewer.npz"), **small)
    settings = {"train.epochs": 2, "model.hidden": 4}
    with pytest.raises(KeyboardInterrupt), start_run(str(spec), None, settings, str(folder / "left")) as engine:
        interrupt_at(engine, 13)
        finish(engine)
    shutil.copytree(folder / "long", folder / "copy")
    return folder


def diff(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, dict[str, Any]]:
    code = main(["diff", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_runs_of_eight_epochs_and_of_one_are_different(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = diff(capsys, folder / "long", folder / "short")
    assert code == 2 and found["different"]
    assert found["recipe"] == [{"key": "train.epochs", "before": 2, "after": 1}]
    assert found["data"] == []
    final = [json.loads((folder / name / "run.json").read_text())["metrics"] for name in ("long", "short")]
    metrics = {each["metric"]: (each["before"], each["after"]) for each in found["metrics"]}
    assert metrics == {name: (final[0][name], final[1][name]) for name in final[0]}
    assert all(side["seconds"] > 0 for side in found["costs"].values())


def test_other_examples_are_listed_by_split(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = diff(capsys, folder / "short", folder / "fewer")
    assert code == 2
    assert [each["key"] for each in found["recipe"]] == ["data.train"]
    assert found["data"] == [
        {"split": "train", "before": 480, "after": 400},
        {"split": "test", "before": 120, "after": 100},
    ]


def test_a_copy_of_a_run_is_equal_whatever_its_seconds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = folder / "copy/seconds.jsonl"
    seconds.write_text("".join(line + "\n" for line in map(slower, seconds.read_text().splitlines())))
    code, found = diff(capsys, folder / "long", folder / "copy")
    assert code == 0 and not found["different"]
    assert found["recipe"] == found["data"] == []
    assert found["costs"]["after"]["seconds"] > found["costs"]["before"]["seconds"]


def test_a_repetition_of_a_training_is_equal(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(folder / "digits.mod", tmp_path / "again", train__epochs=1, model__hidden=4)
    code, found = diff(capsys, folder / "short", tmp_path / "again")
    assert code == 0, found
    assert found["values"]["trained"] == "equal"


def slower(line: str) -> str:
    segment = json.loads(line)
    return json.dumps({**segment, "seconds": segment["seconds"] + 1})


def test_an_unfinished_run_has_what_it_has_so_far(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = diff(capsys, folder / "long", folder / "left")
    assert code == 2
    assert found["notes"] == ["left is unfinished: its metrics are those of epoch 1, step 10"]
    metrics = {each["metric"]: each for each in found["metrics"]}
    assert metrics["train.total_loss"]["before"] is not None and metrics["train.total_loss"]["after"] is not None
    assert metrics["test.accuracy"]["after"] is None


def test_a_run_against_its_spec_says_nothing_of_recipes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = diff(capsys, folder / "long", folder / "digits.mod", "-s", "hidden=4")
    assert code == 0
    assert not found.keys() & {"recipe", "data", "metrics", "routing"}
    assert "seconds" not in found["costs"]["before"]


def test_a_run_with_edited_logs_is_compared_by_its_architecture(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder / "short", tmp_path / "edited")
    (tmp_path / "edited/metrics.jsonl").write_text("")
    _, found = diff(capsys, folder / "short", tmp_path / "edited")
    assert "metrics" not in found
    assert "its logs have changed, so only the architectures are compared" in found["notes"][0]


def test_a_notebook_gets_the_same(folder: Path) -> None:
    found = modgraph.load_run(folder / "long").diff(folder / "short")
    assert found.is_different and found.runs is not None
    assert str(found).startswith("recipe: 1 key; metrics: ")
    assert modgraph.diff(folder / "long", folder / "short").as_json() == found.as_json()


def test_runs_are_compared_without_torch(folder: Path) -> None:
    program = (
        "import sys; from modgraph.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(code if 'torch' not in sys.modules else 9)"
    )
    runs = [str(folder / name) for name in ("long", "short")]
    made = subprocess.run([sys.executable, "-c", program, "diff", *runs], capture_output=True, text=True, timeout=60)
    assert made.returncode == 2, made.stdout + made.stderr
    assert "train.epochs" in made.stdout
