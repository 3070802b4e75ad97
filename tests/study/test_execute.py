"""Sweeps as commands: each point an ordinary run, trained once, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from modgraph.cli import main
from tests.study.tiny_sweeps import files_of, runs_in, start_sweep, sweep, write_tiny

GRID = ("tiny.mod", "-s", "hidden=[2,4]", "--seeds", "2", "--out", "runs/s")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the grid was swept in two processes."""
    folder = tmp_path_factory.mktemp("swept")
    write_tiny(folder)
    ended = sweep(folder, *GRID, "--jobs", "2")
    assert ended.code == 0, ended.err
    assert ended.counts == {"points": 4, "finished": 4, "failed": 0, "repeated": 0}
    assert "[4/4]" in ended.err and "test.accuracy" in ended.err, f"a line for each point: {ended.err}"
    return folder


def test_a_point_is_an_ordinary_run(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(swept)
    assert main(["train", "tiny.mod", "-s", "hidden=4", "-s", "train.seed=1", "--out", "alone"]) == 0
    assert files_of(swept / "alone") == files_of(swept / "runs/s/hidden=4,seed=1"), "bit for bit, logs and records too"


def test_what_has_finished_is_not_trained_again(swept: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in (swept / "runs/s").rglob("*.safetensors")}
    ended = sweep(swept, *GRID)
    assert ended.counts["finished"] == 4
    assert "4 of 4 points are done already" in ended.err
    assert {path: path.stat().st_mtime_ns for path in (swept / "runs/s").rglob("*.safetensors")} == before


def test_a_dry_run_lists_points_with_costs_and_states(swept: Path) -> None:
    ended = sweep(swept, "tiny.mod", "-s", "hidden=[2,8]", "--seeds", "1", "--out", "runs/s", "--dry-run")
    assert ended.code == 0, ended.err
    rows = [line.split() for line in ended.out.splitlines()[1:-1]]
    assert rows == [["hidden=2,seed=0", "23", "18", "finished"], ["hidden=8,seed=0", "83", "72"]], "6·8+8 + 8·3+3"
    assert ended.counts == {"points": 2, "finished": 1, "failed": 0, "repeated": 0}
    assert not (swept / "runs/s/hidden=8,seed=0").exists()


def test_an_extended_sweep_keeps_what_it_has(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    assert sweep(tmp_path, "tiny.mod", "-s", "hidden=[2]", "--out", "s").code == 0
    first = runs_in(tmp_path / "s")
    ended = sweep(tmp_path, "tiny.mod", "-s", "hidden=[3,2]", "-s", "train.epochs=[3]", "--out", "s")
    assert ended.counts == {"points": 2, "finished": 2, "failed": 0, "repeated": 0}
    assert "[2/2]" in ended.err and "[1/2]" not in ended.err
    now = runs_in(tmp_path / "s")
    assert len(now) == 2 and {**now, **first} == now, "one more run, the other as it was"
    ended = sweep(tmp_path, "tiny.mod", "-s", "hidden=[3]", "--out", "s")
    assert "1 points of earlier sweeps" in ended.err or "1 point of" in ended.err
    points = json.loads((tmp_path / "s/sweep.json").read_text())["points"]
    assert sorted(each["values"]["hidden"] for each in points) == [2, 3], "both are kept"


def test_a_failure_is_kept_listed_and_tried_again_on_demand(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    words = ("tiny.mod", "-s", "train.optimizer.lr=[1e30,0.01]", "--out", "s")
    ended = sweep(tmp_path, *words)
    assert ended.code == 1
    assert ended.counts == {"points": 2, "finished": 1, "failed": 1, "repeated": 0}
    assert "failed: lr=1e+30: MG604" in ended.err and "--retry" in ended.err, ended.err
    failure = json.loads((tmp_path / "s/failures.jsonl").read_text())
    assert failure["codes"] == ["MG604"] and failure["run"] == "lr=1e+30"
    again = sweep(tmp_path, *words)
    assert again.code == 1 and "2 of 2 points are done already" in again.err
    assert len((tmp_path / "s/failures.jsonl").read_text().splitlines()) == 1, "it was not tried"
    assert sweep(tmp_path, *words, "--retry").code == 1
    assert len((tmp_path / "s/failures.jsonl").read_text().splitlines()) == 2


def test_two_sweeps_do_not_share_a_folder(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    words = ("tiny.mod", "-s", "hidden=[2,3]", "-s", "train.epochs=2000", "--out", "s")
    first = start_sweep(tmp_path, *words)
    try:
        wait_for(lambda: any((tmp_path / "s").rglob("checkpoints/*.json")))
        ended = sweep(tmp_path, *words)
        assert ended.code == 1 and "error[MG661]" in ended.err, ended.err
    finally:
        first.kill()
        first.communicate()


@pytest.mark.parametrize("name", ["notes.txt", "run.json"])
def test_a_folder_with_other_files_is_refused(tmp_path: Path, name: str) -> None:
    write_tiny(tmp_path)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / name).write_text("{}")
    ended = sweep(tmp_path, "tiny.mod", "-s", "hidden=[2,3]", "--out", "s")
    assert ended.code == 1 and "error[MG660]" in ended.err, ended.err
    assert [path.name for path in (tmp_path / "s").iterdir()] == [name], "nothing is written"


def test_ctrl_c_keeps_the_step_and_the_same_command_goes_on(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    words = ("tiny.mod", "-s", "hidden=[2,3]", "-s", "train.epochs=300", "--out", "s")
    process = start_sweep(tmp_path, *words)
    wait_for(lambda: any((tmp_path / "s").rglob("checkpoints/*.json")))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "go on: modgraph sweep tiny.mod -s 'hidden=[2,3]' -s train.epochs=300 --out s" in err, err
    assert sweep(tmp_path, *words).counts["finished"] == 2
    assert sweep(tmp_path, *words[:-1], "whole").code == 0
    assert runs_in(tmp_path / "s") == runs_in(tmp_path / "whole")


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    words = ("tiny.mod", "-s", "hidden=[2,3]", "-s", "train.epochs=100", "--out", "s")
    process = start_sweep(tmp_path, *words)
    wait_for(lambda: any((tmp_path / "s").rglob("checkpoints/*.json")))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["finished"] == 2


def wait_for(is_there: object, seconds: float = 60) -> None:
    """Wait until a condition holds."""
    assert callable(is_there)
    end = time.monotonic() + seconds
    while not is_there():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)
