"""The seconds of a run's steps: that they sum up after any death, and never stop a training."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.store.run_directory import RunDirectory
from modgraph.store.seconds import Segment, add_segment, read_seconds
from modgraph.training.run import finish, start_run
from tests.small_runs import begin, final_weights, go_on, interrupt_at, lay_out_run


def kept_in(run: RunDirectory) -> list[dict[str, float]]:
    return [json.loads(line) for line in run.seconds.read_text().splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A finished run with checkpoints at the steps 10, 20, 30 and 40."""
    folder = tmp_path_factory.mktemp("run")
    begin(lay_out_run(folder), folder / "run")
    return RunDirectory(folder / "run")


@pytest.fixture
def lines(run: RunDirectory) -> list[str]:
    """Lines of segments that replace those of the run for a test."""
    return [json.dumps({"since": step - 10, "step": step, "seconds": 1.0}) for step in (10, 20, 30, 40)]


def read(run: RunDirectory, lines: list[str]) -> list[tuple[int, float]] | None:
    kept = run.seconds.read_bytes()
    run.seconds.write_text("".join(f"{line}\n" for line in lines))
    try:
        return read_seconds(run)
    finally:
        run.seconds.write_bytes(kept)


def test_each_checkpoint_has_the_seconds_of_the_steps_before_it(spec: Path, tmp_path: Path) -> None:
    began = time.perf_counter()
    begin(spec, tmp_path / "run", train__checkpoint_every=4)
    whole = time.perf_counter() - began
    found = read_seconds(RunDirectory(tmp_path / "run"))
    assert found is not None, "the seconds are there"
    steps = [step for step, _ in found]
    assert steps == [4, 8, 10, 12, 16, 20, 24, 28, 30, 32, 36, 40], "a segment ends at each checkpoint, each epoch"
    seconds = [seconds for _, seconds in found]
    assert seconds == sorted(seconds) and 0 < seconds[0] <= seconds[-1] < whole, "they sum up to less than the call"


def test_validation_and_tests_take_no_seconds(spec: Path, tmp_path: Path) -> None:
    def wait(*_: object) -> dict[str, float]:
        time.sleep(0.5)
        return {"total_loss": 1.0}

    with start_run(str(spec), None, {"train.epochs": 2, "train.validation": 0.2}, str(tmp_path / "run")) as engine:
        engine.measure = wait  # type: ignore[method-assign]
        finish(engine)
    found = read_seconds(RunDirectory(tmp_path / "run"))
    assert found is not None and found[-1][1] < 0.5, "small steps are quick, the measurements are not"


def test_steps_that_were_trained_again_count_once(spec: Path, tmp_path: Path) -> None:
    whole, run = begin(spec, tmp_path / "whole"), RunDirectory(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), start_run(str(spec), None, {}, str(run.path)) as engine:
        interrupt_at(engine, 27)
        finish(engine)
    add_segment(run, Segment(20, 25, 1000.0))  # of a checkpoint that a kill prevented
    assert go_on(run.path) == whole
    assert final_weights(run.path) == final_weights(tmp_path / "whole"), "no bit depends on the seconds"
    found = read_seconds(run)
    assert found is not None and [step for step, _ in found] == [10, 20, 30, 40]
    counted = [line["seconds"] for line in kept_in(run) if line["step"] != 25]
    assert found[-1][1] == pytest.approx(sum(counted)), "the segment that another replaces is left out"


def test_later_segments_replace_all_from_their_first_step(run: RunDirectory, lines: list[str]) -> None:
    again = [json.dumps({"since": at, "step": to, "seconds": 5.0}) for at, to in ((10, 30), (30, 40))]
    assert read(run, lines) == [(10, 1.0), (20, 2.0), (30, 3.0), (40, 4.0)]
    assert read(run, [*lines, *again]) == [(10, 1.0), (30, 6.0), (40, 11.0)]


def test_a_line_that_a_kill_cut_loses_no_other(run: RunDirectory, lines: list[str]) -> None:
    kept = run.seconds.read_bytes()
    run.seconds.write_text("\n".join([*lines[:3], lines[3][:12]]))
    add_segment(run, Segment(30, 40, 2.0))
    assert read_seconds(run) == [(10, 1.0), (20, 2.0), (30, 3.0), (40, 5.0)]
    run.seconds.write_bytes(kept)


DAMAGED = ["", "{", "[" * 100_000, "null", '{"since": 10}', '{"since": 10, "step": 1e999, "seconds": 1.0}']
DAMAGED += ['{"since": 10, "step": 20, "seconds": NaN}', '{"since": 10, "step": 20, "seconds": Infinity}']


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda each: each[:40])
def test_damaged_lines_give_no_sum(run: RunDirectory, lines: list[str], damage: str) -> None:
    assert read(run, [lines[0], damage, *lines[2:]]) is None, "the steps from 10 to 20 have no seconds"
    assert read(run, [*lines, damage]) is not None, "no step lacks its seconds"


@pytest.mark.parametrize("left", [slice(1, None), slice(0, 3), slice(0, 0)], ids=["first", "last", "all"])
def test_missing_lines_give_no_sum(run: RunDirectory, lines: list[str], left: slice) -> None:
    assert read(run, lines[left]) is None


def test_a_training_goes_on_without_its_seconds(spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with start_run(str(spec), None, {"train.epochs": 2}, str(out)) as engine:
        (out / "seconds.jsonl").mkdir()
        metrics = finish(engine)
    assert metrics["steps"] == 20
    assert read_seconds(RunDirectory(out)) is None, "there is a folder in its place"


def test_a_migrated_run_counts_from_its_first_step(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "old", train__epochs=2)
    options = ["--to", str(spec), "--out", str(tmp_path / "new"), "-s", "train.epochs=4"]
    assert main(["migrate", str(tmp_path / "old"), *options]) == 0
    go_on(tmp_path / "new")
    found = read_seconds(RunDirectory(tmp_path / "new"))
    assert found is not None and [step for step, _ in found] == [30, 40]


def test_the_seconds_of_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModgraphError):
        read_seconds(RunDirectory(tmp_path))
