"""Training: that it learns, that resuming equals not stopping, and what it says when it cannot go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.training import load_run
from modgraph.training.run import finish, resume, start

SPEC = """
model digits(hidden=16) {
  input  image: float[1, 8, 8]
  target label: class[10]
  logits = image -> flatten -> linear(hidden) -> relu -> dropout(0.2) -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE = """
data: {{name: npz, train: {folder}/digits.npz}}
train: {{epochs: 4, batch: 50, optimizer: {{name: {optimizer}, lr: 0.01}}, schedule: cosine}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A small net and a recipe on scikit-learn's digits, as a user would lay them out."""
    from sklearn.datasets import load_digits

    data = load_digits()
    np.savez(tmp_path / "digits.npz", image=data.images[:600, None] / 16, label=data.target[:600])
    (tmp_path / "digits.mod").write_text(SPEC)
    (tmp_path / "digits.yaml").write_text(RECIPE.format(folder=tmp_path, optimizer="adam"))
    return tmp_path / "digits.mod"


def final_weights(run: Path) -> bytes:
    return sorted((run / "checkpoints").glob("*.safetensors"))[-1].read_bytes()


def test_training_learns_and_leaves_a_whole_run(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert main(["train", str(spec), "--out", str(out), "-s", "train.epochs=15", "-s", "hidden=32"]) == 0
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert metrics["test.accuracy"] > 0.8
    names = {path.name for path in out.iterdir()}
    assert names == {"spec.mod", "ir.json", "recipe.yaml", "run.json", "metrics.jsonl", "tensorboard", "checkpoints"}
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 16))
    assert lines[-1]["loss" if "loss" in lines[-1] else "total_loss"] < lines[0]["total_loss"]
    run = load_run(out)
    assert run.graph.parameters == {"hidden": 32}
    assert not run.model().training
    assert main(["eval", str(out), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["test.accuracy"] == pytest.approx(metrics["test.accuracy"])
    assert main(["cost", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == 64 * 32 + 32 + 32 * 10 + 10


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "adamw"])
def test_resuming_equals_never_stopping(spec: Path, tmp_path: Path, optimizer: str) -> None:
    overrides = {"train.optimizer.name": optimizer, **({"train.optimizer.momentum": 0.9} if optimizer == "sgd" else {})}
    whole = start(str(spec), None, overrides, str(tmp_path / "whole"))
    expected = finish(whole)
    broken = start(str(spec), None, overrides, str(tmp_path / "broken"))
    steps = 0
    plain_step = broken._step

    def step_until_cut(*arguments: object) -> None:
        nonlocal steps
        steps += 1
        if steps == 27:
            raise KeyboardInterrupt
        plain_step(*arguments)  # type: ignore[arg-type]

    broken._step = step_until_cut  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        finish(broken)
    assert finish(resume(str(tmp_path / "broken"))) == expected
    assert final_weights(tmp_path / "broken") == final_weights(tmp_path / "whole")
    assert (tmp_path / "broken/metrics.jsonl").read_text() == (tmp_path / "whole/metrics.jsonl").read_text()


def test_a_killed_training_resumes_to_the_same_weights(spec: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "modgraph", "train"]
    settings = ["-s", "train.epochs=30"]
    subprocess.run([*command, str(spec), "--out", str(tmp_path / "whole"), *settings], check=True, capture_output=True)
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [*command, str(spec), "--out", str(killed), *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not list(killed.glob("checkpoints/*.json")) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    subprocess.run([*command, "--resume", str(killed)], check=True, capture_output=True)
    assert final_weights(killed) == final_weights(tmp_path / "whole")


def test_resuming_a_finished_run_changes_nothing(spec: Path, tmp_path: Path) -> None:
    first = finish(start(str(spec), None, {}, str(tmp_path / "run")))
    before = final_weights(tmp_path / "run")
    assert finish(resume(str(tmp_path / "run"))) == first
    assert final_weights(tmp_path / "run") == before


def test_it_stops_early_when_the_metric_is_reached(spec: Path, tmp_path: Path) -> None:
    engine = start(str(spec), None, {"train.early_stop.at": 0.15, "train.epochs": 50}, str(tmp_path / "run"))
    assert finish(engine)["epochs"] < 50
    again = resume(str(tmp_path / "run"))
    assert again.enough


def test_a_run_is_not_overwritten(spec: Path, tmp_path: Path) -> None:
    finish(start(str(spec), None, {"train.epochs": 1}, str(tmp_path / "run")))
    with pytest.raises(ModgraphError, match="holds a run already"):
        start(str(spec), None, {}, str(tmp_path / "run"))


@pytest.mark.parametrize("damage", ["truncate", "flip", "foreign", "no json"])
def test_a_damaged_checkpoint_is_refused_by_name(spec: Path, tmp_path: Path, damage: str) -> None:
    run = tmp_path / "run"
    finish(start(str(spec), None, {"train.epochs": 1}, str(run)))
    path = next((run / "checkpoints").glob("*.safetensors"))
    content = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "foreign":
        other = tmp_path / "other"
        finish(start(str(spec), None, {"train.epochs": 1, "hidden": 8}, str(other)))
        for file in (other / "checkpoints").iterdir():
            (run / "checkpoints" / file.name).write_bytes(file.read_bytes())
    else:
        path.with_suffix(".json").write_text("{")
    with pytest.raises(ModgraphError) as caught:
        resume(str(run))
    assert caught.value.diagnostics[0].code == "MG603"


def test_a_loss_that_is_not_a_number_stops_the_training(spec: Path, tmp_path: Path) -> None:
    engine = start(str(spec), None, {"train.optimizer.name": "sgd", "train.optimizer.lr": 1e30}, str(tmp_path / "run"))
    with pytest.raises(ModgraphError, match="the loss is"):
        finish(engine)


def test_there_must_be_something_to_learn(spec: Path, tmp_path: Path) -> None:
    spec.write_text(SPEC.replace("loss cross_entropy(logits, label)", ""))
    with pytest.raises(ModgraphError, match="declares no loss"):
        start(str(spec), None, {}, str(tmp_path / "run"))


DATA_MISTAKES = {
    "shape": ({"image": np.zeros((5, 8, 8)), "label": np.zeros(5, int)}, "needs 4 axes"),
    "size": ({"image": np.zeros((5, 1, 9, 8)), "label": np.zeros(5, int)}, "needs 8 where it has 9"),
    "missing": ({"image": np.zeros((5, 1, 8, 8))}, 'no array "label"'),
    "range": ({"image": np.zeros((5, 1, 8, 8)), "label": np.full(5, 10)}, "allows 0 to 9"),
    "negative": ({"image": np.zeros((5, 1, 8, 8)), "label": np.full(5, -1)}, "allows 0 to 9"),
    "real label": ({"image": np.zeros((5, 1, 8, 8)), "label": np.zeros(5)}, "whole numbers"),
    "nan": ({"image": np.full((5, 1, 8, 8), np.nan), "label": np.zeros(5, int)}, "not a number"),
    "text": ({"image": np.full((5, 1, 8, 8), "x"), "label": np.zeros(5, int)}, "not numbers"),
    "numbers differ": ({"image": np.zeros((5, 1, 8, 8)), "label": np.zeros(4, int)}, "has 4 examples"),
    "empty": ({"image": np.zeros((0, 1, 8, 8)), "label": np.zeros(0, int)}, "no examples"),
}


@pytest.mark.parametrize("mistake", DATA_MISTAKES)
def test_arrays_that_do_not_fit_are_told(spec: Path, tmp_path: Path, mistake: str) -> None:
    arrays, words = DATA_MISTAKES[mistake]
    np.savez(tmp_path / "digits.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(ModgraphError, match=words):
        start(str(spec), None, {}, str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04junk", b"\x80\x04\x95", b"hello"])
def test_files_that_are_no_npz_are_told(spec: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "digits.npz").write_bytes(content)
    with pytest.raises(ModgraphError) as caught:
        start(str(spec), None, {}, str(tmp_path / "run"))
    assert caught.value.diagnostics[0].code == "MG510"


def test_pickled_arrays_are_refused(spec: Path, tmp_path: Path) -> None:
    objects = np.array([{"a": 1}] * 5, dtype=object)
    np.savez(tmp_path / "digits.npz", image=objects, label=np.zeros(5, int))
    with pytest.raises(ModgraphError, match=r"(?i)pickle"):
        start(str(spec), None, {}, str(tmp_path / "run"))


@pytest.mark.parametrize(
    "command", [["train"], ["train", "--resume", "nowhere"], ["eval", "nowhere"], ["cost", "specs"]]
)
def test_commands_without_a_run_say_so(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 1
    assert "error[MG" in capsys.readouterr().err
