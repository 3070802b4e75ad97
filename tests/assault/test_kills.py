"""SIGKILL at any moment and before any change of a file: what is taken up ends as if nothing had been."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import pytest

from modgraph.cli import main
from tests.assault.campaign import campaign
from tests.assault.kills import dying_at, ends, import_all
from tests.assault.trainings import TRAININGS, left_in, scalars_in, train, written

SHARES = 10  # of the file operations of each training
KILLS = 6  # at random moments, in each share
NAMES = tuple(TRAININGS)
TRAINS = ("modgraph.training.run", "torch.utils.tensorboard")
EXPORTS = ("modgraph.backends.onnx", "onnxruntime", "onnxscript")


class Case:
    """A training in a folder, and the same once begun and ended without a kill."""

    def __init__(self, name: str, home: Path) -> None:
        import_all(*TRAINS)
        self.home, self.log = home, home / "log"
        for needed in filter(None, (TRAININGS[name].start,)):
            assert ends(partial(train, written(needed, home), home / needed), self.log)
        self.work = partial(train, written(name, home))
        began = time.monotonic()
        assert ends(partial(self.work, home / "whole"), self.log)
        self.duration = time.monotonic() - began
        self.files, self.scalars = left_in(home / "whole"), scalars_in(home / "whole")
        self.runs = 0

    def new(self) -> Path:
        self.runs += 1
        return self.home / f"run{self.runs}"

    def kill_at(self, shares: list[float]) -> int:
        """Kill a run at each of these moments, shares of its duration, and take it up; how many it was killed."""
        run = self.new()
        kills = sum(not ends(partial(self.work, run), self.log, time_share * self.duration) for time_share in shares)
        self.finish(run)
        return kills

    def kill_before(self, operation: int) -> bool:
        """Kill a run before a change of a file; false if it has fewer."""
        run = self.new()
        if ends(dying_at(operation, run, partial(self.work, run)), self.log):
            return False
        self.finish(run)
        return True

    def finish(self, run: Path) -> None:
        assert ends(partial(self.work, run), self.log)
        found = left_in(run)
        assert sorted(found) == sorted(self.files)
        assert [name for name in found if found[name] != self.files[name]] == []
        assert scalars_in(run) == self.scalars


@contextmanager
def case(name: str) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        yield Case(name, Path(folder))


def kill_trainings(part: int) -> Counter[str]:
    """One training's share of its file operations, every one of them, and some moments at random."""
    name, share = NAMES[part % len(NAMES)], part // len(NAMES)
    shares = random.Random(part)
    with case(name) as training:
        counts = Counter({f"{name}: at a moment": training.kill_at([shares.random() for _ in range(KILLS)])})
        operation = 1 + share
        while training.kill_before(operation):
            counts[f"{name}: before a change of a file"] += 1
            operation += SHARES
    return counts


def kill_a_few() -> int:
    """Two at random moments, one among its checkpoints."""
    with case("backprop") as training:
        kills = training.kill_at([0.3, 0.6])
        assert training.kill_before(40)
    return kills


@pytest.mark.slow
def test_a_training_that_was_killed_ends_as_if_it_had_not_been() -> None:
    """Some minutes less than all kills; `tests/training/test_resume.py` has one for every suite."""
    with ProcessPoolExecutor(1, get_context("forkserver")) as pool:
        assert pool.submit(kill_a_few).result() > 0


def kill_one_that_grows() -> int:
    """Four runs, each killed five times."""
    shares = random.Random(7)
    with case("continual") as training:
        return sum(training.kill_at([shares.random() for _ in range(5)]) for _ in range(4))


@pytest.mark.slow
def test_twenty_kills_of_a_training_that_grows() -> None:
    """Weights and logs end the same, the growth log among them."""
    with ProcessPoolExecutor(1, get_context("forkserver")) as pool:
        assert pool.submit(kill_one_that_grows).result() >= 12


# ------------------------------------------------------------ exports


@cache
def runs() -> tuple[tempfile.TemporaryDirectory[str], list[Path]]:
    """Two runs of the same spec with other weights."""
    import_all(*TRAINS, *EXPORTS)
    folder = tempfile.TemporaryDirectory()
    home = Path(folder.name)
    spec, log = written("backprop", home), home / "log"
    assert ends(partial(train, spec, home / "first"), log)
    (home / "backprop.yaml").write_text((home / "backprop.yaml").read_text().replace('"epochs": 3', '"epochs": 2'))
    assert ends(partial(train, spec, home / "second"), log)
    return folder, [home / "first", home / "second"]


def export(run: Path, target: Path) -> None:
    assert main(["export", str(run), "-o", str(target)]) == 0


def kill_exports(part: int) -> Counter[str]:
    """An export over an older one, killed before its change of a file of this number, from 0."""
    folder, (first, second) = runs()
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "new").mkdir()
        target, log = home / "m.onnx", Path(folder.name) / "log"
        pair = target, target.with_suffix(".json")
        assert ends(partial(export, second, home / "new/m.onnx"), log)
        new = [(home / "new" / path.name).read_bytes() for path in pair]
        assert ends(partial(export, first, target), log)
        old = [path.read_bytes() for path in pair]
        assert old[0] != new[0]
        if ends(dying_at(1 + part, home, partial(export, second, target)), log):
            return Counter()
        found = [path.read_bytes() if path.exists() else None for path in pair]
        assert found[0] in (old[0], new[0])
        assert found[1] in (old[1], new[1], None)
        state = " and ".join("none" if each is None else "new" if each in new else "old" for each in found)
        assert ends(partial(export, second, target), log)
        assert [path.read_bytes() for path in pair] == new
        assert sorted(path.name for path in home.iterdir()) == ["m.json", "m.onnx", "new"]
    return Counter({"export: before a change of a file": 1, f"bundle and manifest: {state}": 1})


OPERATIONS = 12  # more than an export has


@pytest.mark.slow
def test_five_hundred_kills() -> None:
    trained = campaign("kills", kill_trainings, SHARES * len(NAMES))
    exported = campaign("kills_of_exports", kill_exports, OPERATIONS)
    print(trained, exported)
    for name in NAMES:
        assert trained[f"{name}: at a moment"] >= 20
        assert trained[f"{name}: before a change of a file"] >= 50
    assert trained.total() + exported["export: before a change of a file"] >= 500
