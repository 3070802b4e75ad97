"""Leaving a training and taking it up again: bit for bit, after any death, and never from half a file."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.store.run_directory import RunDirectory
from modgraph.store.seconds import read_seconds
from modgraph.training.run import finish, start_run
from tests.children import PATIENCE, begun_in_a_child, end_of, output_of_child
from tests.small_runs import begin, dotted, final_weights, go_on, interrupt_at


@pytest.mark.some(3)
@pytest.mark.parametrize("every", [None, 4])
@pytest.mark.parametrize("optimizer", ["adam", "sgd", "adamw"])
def test_resuming_equals_never_stopping(spec: Path, tmp_path: Path, optimizer: str, every: int | None) -> None:
    overrides = {"train__optimizer__name": optimizer, "train__checkpoint_every": every}
    if optimizer == "sgd":
        overrides["train__optimizer__momentum"] = 0.9
    expected = begin(spec, tmp_path / "whole", **overrides)
    with (
        pytest.raises(KeyboardInterrupt),
        start_run(str(spec), None, dotted(overrides), str(tmp_path / "broken")) as engine,
    ):
        interrupt_at(engine, 27)
        finish(engine)
    assert go_on(tmp_path / "broken") == expected
    assert final_weights(tmp_path / "broken") == final_weights(tmp_path / "whole")
    for name in ("metrics.jsonl", "steps.jsonl", "confusion.json"):
        assert (tmp_path / "broken" / name).read_text() == (tmp_path / "whole" / name).read_text(), name


def test_lines_of_an_epoch_that_left_no_checkpoint_are_written_anew(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training dies after the first line of its log, and before its first checkpoint."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    expected = begin(spec, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("modgraph.training.engine.write_checkpoint", interrupted)
        begin(spec, tmp_path / "broken")
    assert len((tmp_path / "broken/metrics.jsonl").read_text().splitlines()) == 1
    assert go_on(tmp_path / "broken") == expected
    assert (tmp_path / "broken/metrics.jsonl").read_text() == (tmp_path / "whole/metrics.jsonl").read_text()


def test_a_training_that_is_killed_ends_with_the_same_weights(spec: Path, tmp_path: Path) -> None:
    """SIGKILL to the command itself, once it has a checkpoint; tests/assault kills at every moment."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    begin(spec, whole, train__epochs=20)
    train = partial(main, ["train", str(spec), "--out", str(killed), "-s", "train.epochs=20"])
    with Path(os.devnull).open("w") as nowhere:
        child = begun_in_a_child(train, nowhere.fileno(), nowhere.fileno())
    until = time.monotonic() + PATIENCE
    while not list(killed.glob("checkpoints/*.json")) and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    assert end_of(child) == [-signal.SIGKILL], "it has ended before"
    assert json.loads((killed / "run.json").read_text())["status"] == "started"
    go_on(killed)
    assert final_weights(killed) == final_weights(whole)
    assert (killed / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()
    assert (killed / "run.json").read_text() == (whole / "run.json").read_text()
    steps = [[step for step, _ in read_seconds(RunDirectory(run)) or ()] for run in (killed, whole)]
    assert steps[0] == steps[1] and len(steps[1]) == 20, "each epoch has its seconds, once"


def test_resuming_a_finished_run_changes_nothing(spec: Path, tmp_path: Path) -> None:
    first = begin(spec, tmp_path / "run")
    before = final_weights(tmp_path / "run")
    assert go_on(tmp_path / "run") == first
    assert final_weights(tmp_path / "run") == before


@pytest.mark.parametrize("damage", ["truncate", "flip", "foreign", "no json", "edited"])
def test_a_damaged_checkpoint_is_refused_by_name(spec: Path, tmp_path: Path, damage: str) -> None:
    run = tmp_path / "run"
    begin(spec, run, train__epochs=1)
    path = next((run / "checkpoints").glob("*.safetensors"))
    content = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "foreign":
        other = tmp_path / "other"
        begin(spec, other, train__epochs=1, hidden=8)
        for file in (other / "checkpoints").iterdir():
            (run / "checkpoints" / file.name).write_bytes(file.read_bytes())
    elif damage == "edited":
        record = json.loads(path.with_suffix(".json").read_text())
        record["facts"] |= {"waited": "long"}
        path.with_suffix(".json").write_text(json.dumps(record))
    else:
        path.with_suffix(".json").write_text("{")
    with pytest.raises(ModgraphError) as caught:
        go_on(run)
    assert caught.value.diagnostics[0].code == "MG603"


@pytest.mark.some(1)
@pytest.mark.parametrize("limit", [300, 1500, 8000])
def test_a_disk_that_is_full_loses_nothing(spec: Path, tmp_path: Path, limit: int) -> None:
    """No file can grow beyond some bytes: as a new run is laid out, in its logs, in its checkpoints."""
    out = tmp_path / "run"

    def train() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return main(["train", str(spec), "--out", str(out)])

    code, printed = output_of_child(train)
    assert code == 1, printed
    assert "error[MG113]: cannot write" in printed
    assert "Traceback" not in printed
    whole = begin(spec, tmp_path / "whole")
    begun = (out / "run.json").exists() and json.loads((out / "run.json").read_text())["status"] == "started"
    assert (go_on(out) if begun else begin(spec, out)) == whole
    assert final_weights(out) == final_weights(tmp_path / "whole")


def test_a_folder_that_cannot_be_made_is_reported(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModgraphError, match="cannot write"):
        begin(spec, tmp_path / "file" / "run")


def test_two_trainings_into_one_folder_refuse_each_other(spec: Path, tmp_path: Path) -> None:
    with start_run(str(spec), None, {}, str(tmp_path / "run")) as engine:
        for arguments in (["--resume", str(tmp_path / "run")], [str(spec), "--out", str(tmp_path / "run")]):
            code, printed = output_of_child(partial(main, ["train", *arguments]))
            assert code == 1, printed
            assert "MG606" in printed or "MG601" in printed
        finish(engine)
    assert go_on(tmp_path / "run")["epochs"] == 4


def test_only_the_newest_and_the_best_checkpoint_are_kept(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "run", train__epochs=6, train__keep=2, train__validation=0.2, train__best="train.accuracy")
    records = sorted(path.stem for path in (tmp_path / "run/checkpoints").glob("*.json"))
    assert records == sorted(path.stem for path in (tmp_path / "run/checkpoints").glob("*.safetensors"))
    assert 2 <= len(records) <= 3


def test_a_record_whose_tensors_are_gone_is_reported(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    next((tmp_path / "run/checkpoints").glob("*.safetensors")).unlink()
    with pytest.raises(ModgraphError, match="no such file"):
        go_on(tmp_path / "run")
