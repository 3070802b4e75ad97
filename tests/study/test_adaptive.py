"""Searches by Optuna: deterministic, taken up after any kill, and pruned by the median of what came before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from modgraph.cli import main
from modgraph.store.records import seal, unseal
from modgraph.study.adaptive import Trials
from modgraph.study.folder import SweepFolder
from modgraph.study.plan import Search, make_plan
from modgraph.study.space import Range
from modgraph.study.sweep import Optuna, Seeds, Sweep
from tests.small_runs import begin
from tests.study.tiny_sweeps import files_of, read_counts, runs_in, write_tiny

pytest.importorskip("optuna")
RATE = "train.optimizer.lr"
WORDS = ["sweep", "tiny.mod", "-s", f"{RATE}=log(1e-4,1e-1)", "-s", "hidden=[2,3,4]"]
WORDS += ["--optuna", "9", "--metric", "train.total_loss", "--prune", "--out"]


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    """A search in two keys with two seeds."""
    monkeypatch.chdir(tmp_path)
    grid = {RATE: Range("log", 1e-4, 1e-1), "hidden": (2, 3, 4)}
    optuna = Optuna(trials=14, metric="test.total_loss", prune=False, seed=3)
    seeds = Seeds(count=2, keys=("train.seed",))
    sweep = Sweep(write_tiny(tmp_path), grid=grid, optuna=optuna, seeds=seeds)
    (found,) = make_plan([sweep], tmp_path / "s").searches
    return found


def rate(values: Mapping[str, Any]) -> float:
    """A made-up loss, best at a rate of 0.01 with three units."""
    return float(abs(values[RATE] - 0.01) * 10 + abs(values["hidden"] - 3))


def propose(search: Search, jobs: int, spoil: int | None = None) -> list[Mapping[str, Any]]:
    """The values of all trials, each rated when it is proposed; trial `spoil` by another number."""
    folder, finished = SweepFolder(search.planner.out), dict[str, Mapping[str, Any]]()
    trials = Trials(search, jobs, folder, folder.read())
    while (trial := trials.propose(finished, {})) is not None:
        loss = -100.0 if trial.number == spoil else rate(trial.values)
        finished |= {point.identity: {"test.total_loss": loss} for point in trial.points}
    best = trials.find_best()
    assert best is not None and len(best["runs"]) == 2, "a run for each seed"
    return [each.values for each in trials.trials]


def test_a_search_is_deterministic_and_learns(search: Search) -> None:
    values = propose(search, jobs=1)
    assert len(values) == 14 and values == propose(search, jobs=1)
    assert values[-1] != propose(search, jobs=1, spoil=12)[-1], "the last proposal follows from what came before"


def test_with_two_jobs_a_proposal_knows_all_but_the_last_trial(search: Search) -> None:
    values = propose(search, jobs=2)
    assert values[-1] == propose(search, jobs=2, spoil=12)[-1], "it may be training still"
    assert values[-1] != propose(search, jobs=2, spoil=11)[-1]


def test_a_proposal_waits_for_the_trials_that_it_knows(search: Search) -> None:
    folder = SweepFolder(search.planner.out)
    trials = Trials(search, 2, folder, folder.read())
    assert trials.propose({}, {}) is not None and trials.propose({}, {}) is not None
    assert trials.propose({}, {}) is None, "two jobs, two trials"
    failed = {point.identity: None for point in trials.trials[0].points}
    assert trials.propose({}, failed) is not None, "a trial that failed is over"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a search that prunes."""
    folder = tmp_path_factory.mktemp("searched")
    write_tiny(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*WORDS, "s"]) == 0
    return folder


def points_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "sweep.json").read_text())["points"]
    return found


def losses_of(run: Path) -> list[float]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [line["total_loss"] for line in lines if line["split"] == "train"]


def test_trainings_above_the_median_are_stopped(searched: Path) -> None:
    points = points_of(searched / "s")
    assert [each["trial"] for each in points] == [*range(9)]
    curves = {each["run"]: losses_of(searched / "s" / each["run"]) for each in points}
    for at, point in enumerate(points):
        whole = [curves[each["run"]] for each in points[:at] if "pruned" not in each]
        medians = [median(curve[epoch] for curve in whole) for epoch in range(2)] if len(whole) >= 5 else []
        assert list(point.get("limits", {}).values()) == medians, "by epoch, of those before that were not pruned"
        above = next((epoch for epoch, limit in enumerate(medians) if curves[point["run"]][epoch] > limit), None)
        assert len(curves[point["run"]]) == (3 if above is None else above + 1), point["run"]
        assert ("pruned" in point) == (above is not None)
    assert any("pruned" in each for each in points), "this test needs one"


def test_a_search_that_was_cut_off_goes_on_as_if_it_had_not_been(
    searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last trials are taken away, and the marks of the pruned ones; the search is rebuilt from the runs."""
    monkeypatch.chdir(searched)
    part = tmp_path / "s"
    shutil.copytree("s", part)
    record = unseal(json.loads((part / "sweep.json").read_text()))
    for point in record["points"][7:]:
        shutil.rmtree(part / point["run"])
    kept = [{key: value for key, value in each.items() if key != "pruned"} for each in record["points"][:7]]
    (part / "sweep.json").write_bytes(seal({**record, "points": kept}))
    assert main([*WORDS, str(part)]) == 0
    printed = capsys.readouterr()
    assert read_counts(printed.out)["finished"] == 9 and "7 of 9 points are done already" in printed.err
    assert runs_in(part) == runs_in(searched / "s")
    assert points_of(part) == points_of(searched / "s")


@pytest.mark.slow
def test_a_grid_trains_to_the_end_what_a_search_had_stopped(
    searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(searched)
    shutil.copytree("s", tmp_path / "s")
    record = unseal(json.loads(Path("s/sweep.json").read_text()))
    point = next(each for each in record["points"] if each.pop("pruned", False))
    (tmp_path / "s/sweep.json").write_bytes(seal(record))  # as if it had been killed before it was marked
    values, run = point["values"], tmp_path / "s" / point["run"]
    grid = [f"{name}=[{value}]" for name, value in values.items()]
    assert main(["sweep", "tiny.mod", "-s", grid[0], "-s", grid[1], "--out", str(tmp_path / "s")]) == 0
    begin(Path("tiny.mod"), tmp_path / "single", **{"hidden": values["hidden"], RATE: values[RATE]})
    assert len(losses_of(run)) == 3
    assert files_of(run) == files_of(tmp_path / "single"), "as if it had never been stopped"


def test_a_metric_that_no_run_has_is_a_mistake(searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(searched)
        words = ["validation.total_loss" if word == "train.total_loss" else word for word in WORDS]
        assert main([*words, "s"]) == 1
    assert "error[MG663]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("metric", "code", "way_out"),
    [("test.acuracy", "MG665", 'did you mean "test.accuracy"?'), ("test.accuracy", "MG666", "validation.accuracy")],
)
def test_a_metric_that_cannot_be_searched_by_is_refused(
    metric: str, code: str, way_out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [metric if word == "train.total_loss" else word for word in WORDS]
    assert main([*words, str(tmp_path / "s")]) == 1
    printed = capsys.readouterr().err
    assert f"error[{code}]" in printed and way_out in printed, printed
    assert not (tmp_path / "s").exists(), "before anything trains"
