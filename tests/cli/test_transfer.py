"""Transfer to another task: an encoder goes on frozen, what is the task's own begins afresh, on data of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from modgraph.cli import main
from tests.small_runs import begin, go_on

SPEC = """
block layers(width) {
  input x: float[time, features]
  pool p[2] = linear(width) -> relu
  router r = linear
  y = x -> linear(width) -> p by r
  output y
}

model tasks(names=["a", "b"], frozen_encoder=false) {
  input x: float[time, 4]
  state warmth: float = constant(8)
  if frozen_encoder {
    frozen {
      module encoder = layers(4)
    }
  } else {
    module encoder = layers(4)
  }
  shared = x -> linear(3)
  u = (x -> encoder) / warmth
  for k in names {
    target y[k]: class[time, 3]
    logits[k] = (u, shared) -> concat -> linear(3)
    output logits[k]
    loss task[k] = cross_entropy(logits[k], y[k])
  }
}
"""
RECIPE = """
data: {{name: npz, train: {data}, test: {data}}}
train:
  epochs: 3
  batch: {batch}
  optimizer: {{name: adam, lr: 0.01}}
  states: {{warmth: {{name: stairs, every: 1, factor: 0.5}}}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the tasks a and b, `run`; data and a recipe of tasks a, b and c, and of c alone, of fewer examples."""
    folder = tmp_path_factory.mktemp("transfer")
    random = np.random.default_rng(0)
    for name, tasks, count in (("old", "abc", 24), ("new", "c", 10)):
        x = random.normal(size=(count, 5, 4)).astype("float32")
        labels = {f"y.{task}": random.integers(3, size=(count, 5)) for task in tasks}
        np.savez(folder / f"{name}.npz", x=x, time_length=random.integers(1, 6, count), **labels)
        text = RECIPE.format(data=folder / f"{name}.npz", batch=8 if name == "old" else 5)
        (folder / f"{name}.yaml").write_text(text)
    (folder / "tasks.mod").write_text(SPEC)
    (folder / "tasks.yaml").write_text((folder / "old.yaml").read_text())
    begin(folder / "tasks.mod", folder / "run")
    return folder


def migrate(folder: Path, out: Path, *words: str) -> int:
    return main(["migrate", f"{folder}/run", "--to", f"{folder}/tasks.mod", "--out", str(out), *words])


def checkpoint(run: Path, at: int = -1) -> dict[str, np.ndarray]:
    return load_file(sorted((run / "checkpoints").glob("*.safetensors"))[at])


def of(weights: dict[str, np.ndarray], *words: str) -> dict[str, np.ndarray]:
    return {name: value for name, value in weights.items() if name.startswith(words)}


def equal(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all(first[name].tobytes() == second[name].tobytes() for name in first)


TO_C = ("-s", 'names=["c"]', "-s", "frozen_encoder=true", "-s", "train.keep=9")


def test_an_encoder_goes_on_frozen_with_other_data_from_the_first_epoch(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrate(folder, tmp_path / "on", "--recipe", f"{folder}/new.yaml", *TO_C, "--fresh", "shared") == 0
    printed = capsys.readouterr()
    assert "the training starts with them at epoch 0" in printed.err
    assert "on is at epoch 0, step 0" in printed.err
    assert "6 dropped" in printed.out  # two heads of two weights each, and what is shared
    begins, old = checkpoint(tmp_path / "on"), checkpoint(folder / "run")
    assert equal(of(begins, "weight.encoder."), of(old, "weight.encoder."))
    assert not equal(of(begins, "weight.shared"), of(old, "weight.shared"))
    assert not of(begins, "optimizer.")
    assert {name for name in begins if "logits" in name} == {f"weight.logits.c.linear.{x}" for x in ("weight", "bias")}
    assert json.loads((tmp_path / "on/start.json").read_text())["restarted"]
    go_on(tmp_path / "on")
    ends = checkpoint(tmp_path / "on")
    assert equal(of(ends, "weight.encoder."), of(old, "weight.encoder."))
    assert not equal(of(ends, "weight.shared"), of(begins, "weight.shared"))
    lines = [json.loads(line) for line in (tmp_path / "on/metrics.jsonl").read_text().splitlines()]
    assert [line["state.warmth"] for line in lines if "state.warmth" in line] == [8, 4, 2]


def test_another_task_leaves_all_else_as_it_is(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrate(folder, tmp_path / "on", "-s", 'names=["a","b","c"]') == 0
    printed = capsys.readouterr()
    assert "all its epochs are done: give it more" in printed.err
    begins, old = checkpoint(tmp_path / "on"), checkpoint(folder / "run")
    assert equal({name: begins[name] for name in old}, old), "the state of the optimizer too"
    assert {name for name in begins if name not in old} == {f"weight.logits.c.linear.{x}" for x in ("weight", "bias")}


def test_the_same_data_may_begin_anew(folder: Path, tmp_path: Path) -> None:
    assert migrate(folder, tmp_path / "on", *TO_C, "--restart") == 0
    assert equal(of(checkpoint(tmp_path / "on"), "weight.encoder."), of(checkpoint(folder / "run"), "weight.encoder."))
    assert (
        json.loads((tmp_path / "on/run.json").read_text())["step"] == 0
        if "step" in (tmp_path / "on/run.json").read_text()
        else True
    )


def test_the_same_data_at_another_place_go_on(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "elsewhere.npz").write_bytes((folder / "old.npz").read_bytes())
    assert migrate(folder, tmp_path / "on", "-s", f"data.train={folder}/elsewhere.npz", "-s", "train.epochs=4") == 0
    assert "is at epoch 3, step 9" in capsys.readouterr().err


def test_what_begins_afresh_must_be_there(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrate(folder, tmp_path / "on", "--fresh", "shard.linear", "encoder.*") == 1
    printed = capsys.readouterr().err
    assert "MG844" in printed
    assert 'did you mean "shared.linear"?' in printed
    assert not (tmp_path / "on/run.json").exists()


def test_a_training_from_the_weights_of_a_run_may_begin_some_of_them_anew(folder: Path, tmp_path: Path) -> None:
    words = ["--recipe", f"{folder}/new.yaml", *TO_C]
    start = ["-s", f"start.run={folder}/run", "-s", 'start.fresh=["shared"]']
    assert main(["train", f"{folder}/tasks.mod", "--out", f"{tmp_path}/run", *words, *start]) == 0
    assert migrate(folder, tmp_path / "on", *words, "--fresh", "shared") == 0
    go_on(tmp_path / "on")
    migrated, started = checkpoint(tmp_path / "on"), checkpoint(tmp_path / "run")
    assert equal(started, migrated), "as migrate --fresh, at every weight and moment of the optimizer"
    names = json.loads((tmp_path / "run/start.json").read_text())
    assert {"shared.linear.weight", "shared.linear.bias"} <= {*names["fresh"]} & {*names["left"]}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["start.run=runs/old", 'start.fresh=["shard.linear"]'], 'did you mean "shared.linear"?'),
        (["start.weights=w.pt", "start.map=m.yaml", 'start.fresh=["shared"]'], "list them under random in the map"),
    ],
)
def test_weights_to_start_anew_are_checked_before_a_training(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    given = [part for word in words for part in ("-s", word)]
    assert main(["train", f"{folder}/tasks.mod", "--out", f"{tmp_path}/run", *given]) == 1
    assert expected in capsys.readouterr().err, "before the missing files are reported"
    assert not (tmp_path / "run").exists(), "nothing is left"
