"""Sweeps as commands: each point an ordinary run, trained once, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from modgraph.cli import main
from tests.small_runs import begin
from tests.study.tiny_sweeps import end, files_of, find_workers, read_counts, runs_in, start_sweep, wait_for, write_tiny

GRID = ["sweep", "tiny.mod", "-s", "hidden=[2,4]", "-s", "train.optimizer.lr=[0.01,1e30]", "--out"]
Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the grid was swept in two processes; half of its points diverge."""
    folder = tmp_path_factory.mktemp("swept")
    write_tiny(folder)
    code, out, err = end(start_sweep(folder, *GRID[1:], "s", "--jobs", "2"))
    assert code == 1, err
    assert read_counts(out) == {"points": 4, "finished": 2, "failed": 2, "repeated": 0}
    assert "[4/4]" in err and "test.accuracy" in err and "left" in err, f"a line for each point: {err}"
    assert "failed: hidden=2,lr=1e+30: MG604" in err and "--retry" in err, f"failures are listed: {err}"
    return folder


@pytest.fixture
def swept(once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sweep; the spec and its data are in the current folder."""
    monkeypatch.chdir(once)
    shutil.copytree(once / "s", tmp_path / "s")
    return tmp_path / "s"


def test_a_point_is_an_ordinary_run(swept: Path) -> None:
    single = swept.with_name("single")
    begin(Path("tiny.mod"), single, hidden=4, train__optimizer__lr=0.01)
    assert files_of(single) == files_of(swept / "hidden=4,lr=0.01"), "bit for bit, logs and records too"


@pytest.mark.slow
def test_lists_of_a_sweep_file_reach_the_trainings(
    once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    file = tmp_path / "lists.yaml"
    label = "train.labels: {label: {weights: [1, 2, 3]}}"
    file.write_text(f"spec: tiny.mod\nset: {{{label}, train.best: [train.accuracy]}}\n")
    monkeypatch.chdir(once)
    code, (out, err) = main(["sweep", str(file), "--out", str(tmp_path / "s")]), capsys.readouterr()
    assert (code, read_counts(out)["finished"]) == (0, 1), err
    [files] = runs_in(tmp_path / "s").values()
    assert b"- 3.0" in files["recipe.yaml"], "the weights of the classes"


def test_what_is_done_is_not_trained_again(swept: Path, capsys: Printed) -> None:
    before = {path: path.stat().st_mtime_ns for path in swept.rglob("*.safetensors")}
    assert main([*GRID, str(swept), "--metric", "test.accuracy"]) == 1, "two have failed"
    printed = capsys.readouterr()
    counts = read_counts(printed.out)
    best = counts.pop("best")
    assert counts == {"points": 4, "finished": 2, "failed": 2, "repeated": 0}
    runs = {hidden: json.loads((swept / f"hidden={hidden},lr=0.01/run.json").read_text()) for hidden in (2, 4)}
    assert best["test.accuracy"] == max(each["metrics"]["test.accuracy"] for each in runs.values())
    assert "4 of 4 points are done already" in printed.err
    assert {path: path.stat().st_mtime_ns for path in swept.rglob("*.safetensors")} == before


def test_failures_are_kept_and_tried_again_on_demand(swept: Path, capsys: Printed) -> None:
    def read_failures() -> list[tuple[str, list[str]]]:
        lines = map(json.loads, (swept / "failures.jsonl").read_text().splitlines())
        return sorted((line["run"], line["codes"]) for line in lines)

    failed = [("hidden=2,lr=1e+30", ["MG604"]), ("hidden=4,lr=1e+30", ["MG604"])]
    assert read_failures() == failed
    with (swept / "failures.jsonl").open("a") as file:
        file.write('{"run": "hid')  # a kill in the middle of a line
    assert main([*GRID, str(swept), "--retry"]) == 1
    assert read_failures() == sorted(failed * 2), "both failed once more"
    assert read_counts(capsys.readouterr().out)["failed"] == 2


def test_a_dry_run_lists_points_with_costs_and_states(swept: Path, capsys: Printed) -> None:
    assert main(["sweep", "tiny.mod", "-s", "hidden=[4,8]", "--out", str(swept), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines[1:-1]]
    assert rows == [["hidden=4,lr=0.01", "43", "36", "finished"], ["hidden=8", "83", "72"]], "6·8+8 + 8·3+3 weights"
    assert json.loads(lines[-1]) == {"points": 2, "finished": 1, "failed": 0, "repeated": 0}
    assert not (swept / "hidden=8").exists()


def test_an_extended_sweep_keeps_what_it_has(swept: Path, capsys: Printed) -> None:
    first = runs_in(swept)
    assert main(["sweep", "tiny.mod", "-s", "hidden=[3,4,3]", "-s", "train.epochs=[3]", "--out", str(swept)]) == 0
    printed = capsys.readouterr()
    assert read_counts(printed.out) == {"points": 2, "finished": 2, "failed": 0, "repeated": 0}
    assert "1 of 2 points are done already" in printed.err, "equal settings are one point, whatever varies"
    assert f"3 points of earlier sweeps in {swept}" in printed.err
    now = runs_in(swept)
    assert len(now) == 5 and now == {**now, **first}, "one more run, and the others as they were"
    points = {each["run"]: each["values"] for each in json.loads((swept / "sweep.json").read_text())["points"]}
    assert len(points) == 5
    assert points["hidden=4,lr=0.01"] == {"hidden": 4, "train.optimizer.lr": 0.01, "train.epochs": 3}, "of both sweeps"


@pytest.mark.parametrize("name", ["notes.txt", "run.json"])
def test_a_folder_with_other_files_is_refused(swept: Path, name: str, capsys: Printed) -> None:
    other = swept.with_name("other")
    other.mkdir()
    (other / name).write_text("{}")
    assert main([*GRID, str(other)]) == 1
    assert "error[MG660]" in capsys.readouterr().err
    assert [path.name for path in other.iterdir()] == [name], "nothing is written"


def test_options_that_contradict_each_other_are_refused(swept: Path, capsys: Printed) -> None:
    assert main(["sweep", "tiny.mod", "--random", "3", "--optuna", "2", "--vary", "hidden"]) == 1
    printed = capsys.readouterr().err
    assert printed.count("error[MG151]") == 3, "all at once"
    assert "--metric validation.total_loss" in printed


@pytest.mark.slow
def test_a_sweep_goes_on_after_kills_and_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    """A worker is killed, then Ctrl-C is pressed, then the sweep itself is killed: in the end all is as without."""
    write_tiny(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["tiny.mod", "-s", "hidden=[2,3]", "-s", "train.epochs=30", "--out", "s"]

    def count() -> int:
        """The steps of checkpoints so far."""
        return sum(int(path.stem[5:]) for path in Path("s").rglob("step-*.json"))

    sweep, before = start_sweep(tmp_path, *words), count()
    wait_for(lambda: count() > before)
    assert main(["sweep", *words]) == 1
    assert "error[MG661]" in capsys.readouterr().err, "another sweep into the same folder"
    os.kill(find_workers(sweep)[0], signal.SIGKILL)
    before = count()
    wait_for(lambda: count() > before)
    code, _, err = end(sweep, signal.SIGINT)
    assert code == 130, err
    assert "go on: modgraph sweep tiny.mod -s 'hidden=[2,3]' -s train.epochs=30 --out s" in err, err
    sweep, before = start_sweep(tmp_path, *words), count()
    wait_for(lambda: count() > before)
    end(sweep, signal.SIGKILL)
    assert main(["sweep", *words]) == 0, capsys.readouterr().err
    for hidden in (2, 3):
        begin(Path("tiny.mod"), Path(f"whole/hidden={hidden}"), hidden=hidden, train__epochs=30)
    assert runs_in(Path("s")) == runs_in(Path("whole"))
