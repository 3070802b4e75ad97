"""A sweep that is killed at random moments, itself or its workers, ends as if it had not been."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.small_runs import begin
from tests.study.tiny_sweeps import end, files_of, find_workers, read_counts, start_sweep, write_tiny

SIZES, SEEDS, EPOCHS = (2, 3, 4), 20, 40


@dataclass
class Assault:
    """Kills of a sweep. `ended` has the files of each run that had finished when it was looked at."""

    folder: Path
    words: list[str]
    chance: random.Random
    kills: int = 0
    workers: int = 0
    ended: dict[str, dict[Path, int]] = field(default_factory=dict)

    def kill(self, longest: float) -> bool:
        """Start the sweep and kill it within some seconds of its first step, a worker first half of the time; whether
        it was killed."""
        before, sweep = self.measure(), start_sweep(self.folder, *self.words)
        while self.measure() == before and sweep.poll() is None:
            time.sleep(0.02)
        time.sleep(self.chance.uniform(0, longest))
        workers = find_workers(sweep)
        if workers and self.chance.random() < 0.5:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(workers), signal.SIGKILL)
                self.workers += 1
            time.sleep(self.chance.uniform(0, longest))
        code, _, err = end(sweep, signal.SIGKILL)
        self.kills += code == -signal.SIGKILL
        assert code in (0, -signal.SIGKILL), err
        self.check_finished()
        return code != 0

    def measure(self) -> int:
        """The bytes of all logs."""
        return sum(path.stat().st_size for path in self.folder.glob("s/*/metrics.jsonl"))

    def check_finished(self) -> None:
        """Assert that no run is touched that had finished before."""
        now = {}
        for record in self.folder.glob("s/*/run.json"):
            if '"finished"' in record.read_text():
                kept = [path for path in record.parent.rglob("*") if path.is_file() and path.name != ".lock"]
                now[record.parent.name] = {path: path.stat().st_mtime_ns for path in kept}
        assert {name: now.get(name) for name in self.ended} == self.ended, "what has finished is trained no more"
        self.ended = now


def assault(folder: Path, words: list[str], kills: int, longest: float, seed: int) -> Assault:
    """Kill a sweep so many times, and let it end."""
    found = Assault(folder, words, random.Random(seed))
    while found.kills < kills and found.kill(longest):
        pass
    code, out, err = end(start_sweep(folder, *words))
    assert code == 0, err
    found.check_finished()
    assert read_counts(out)["failed"] == 0
    return found


def check_equal(folder: Path, size: int, seed: int, epochs: int) -> None:
    """Assert that a run equals a training by itself, in all its files but those that measure time."""
    run, single = folder / f"s/hidden={size},seed={seed}", folder / f"single/{size}-{seed}"
    begin(folder / "tiny.mod", single, hidden=size, train__seed=seed, train__epochs=epochs)
    assert files_of(run) == files_of(single), run.name


@pytest.mark.slow
def test_sixty_trainings_killed_ten_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["tiny.mod", "-s", f"hidden={[*SIZES]}", "-s", f"train.epochs={EPOCHS}", "--seeds", str(SEEDS)]
    began = time.monotonic()
    found = assault(tmp_path, [*words, "--jobs", "2", "--out", "s"], kills=10, longest=6, seed=31)
    took = time.monotonic() - began
    assert len(list((tmp_path / "s").glob("*/run.json"))) == len(SIZES) * SEEDS, "each point has one run"
    for size in SIZES:
        for seed in range(SEEDS):
            check_equal(tmp_path, size, seed, EPOCHS)
    print(f"{found.kills} kills, of workers {found.workers}, in {took:.0f} s; {len(SIZES) * SEEDS} runs equal")
    assert found.kills == 10, "it ended before"
