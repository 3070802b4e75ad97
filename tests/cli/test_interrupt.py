"""What a training says while it works, and after Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from modgraph.cli import main
from modgraph.training.progress import StepMeter

SPEC = """model m() {
  input x: float[2] target y: float[2]
  z = x -> linear(16) -> gelu -> linear(2) output z loss mse(z, y)
}"""
RECIPE = "data: {name: two_gaussians, train: 64, test: 8}\ntrain: {epochs: 100000, batch: 16}\n"
TRAIN = [sys.executable, "-m", "modgraph", "train", "m.mod"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.mod").write_text(SPEC)
    (tmp_path / "m.yaml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)


def last_step(run: Path) -> int:
    """The step of the newest checkpoint, -1 without one."""
    return max((int(each.stem.split("-")[-1]) for each in run.glob("checkpoints/*.json")), default=-1)


def wait_for_checkpoint(run: Path, since: int = -1) -> None:
    until = time.monotonic() + 60
    while last_step(run) <= since:
        assert time.monotonic() < until, "the training wrote no checkpoint"
        time.sleep(0.05)


@contextmanager
def started(command: list[str], **streams: Any) -> Iterator[subprocess.Popen[Any]]:
    """A training that has ended in the end, whatever happens."""
    with subprocess.Popen(command, **streams) as training:
        try:
            yield training
        finally:
            training.kill()


def interrupt(command: list[str], run: Path, since: int = -1) -> tuple[int, str]:
    """Press Ctrl-C once a training has a checkpoint after a step; the step that is kept, and the command to go on."""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as training:
        wait_for_checkpoint(run, since)
        training.send_signal(signal.SIGINT)
        out, err = training.communicate(timeout=60)
    assert training.returncode == 130
    assert out == "", "there are no final metrics"
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    found = re.fullmatch(r"interrupted: the run is kept up to step (\d+) \(epoch \d+\); go on: modgraph (.*)", last)
    assert found is not None, last
    return int(found[1]), found[2]


def test_ctrl_c_keeps_the_step_and_says_how_to_go_on() -> None:
    run = Path("runs/m")
    first, command = interrupt(TRAIN, run)
    assert command == "train --resume runs/m"
    assert last_step(run) == first, "the step that was under way is kept"
    second, _ = interrupt([sys.executable, "-m", "modgraph", *shlex.split(command)], run, since=first)
    assert second > first
    assert json.loads((run / "run.json").read_text())["status"] == "started"


def test_ctrl_c_before_a_run_begins_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("modgraph.training.run.start_run", interrupt)
    assert main(["train", "m.mod"]) == 130
    assert capsys.readouterr().err == "interrupted before the first step: nothing is kept\n"


@pytest.mark.slow
def test_a_terminal_has_a_bar_with_loss_rate_and_time_left() -> None:
    leader, follower = pty.openpty()
    text, until = b"", time.monotonic() + 60
    with started(TRAIN, stdout=subprocess.DEVNULL, stderr=follower) as training:
        os.close(follower)
        while last_step(Path("runs/m")) < 0:
            assert time.monotonic() < until, "the training wrote no checkpoint"
            text += read_terminal(leader, 0.1)  # else it would wait as soon as the terminal is full
        text += read_terminal(leader, 1)
        training.send_signal(signal.SIGINT)
        text += read_terminal(leader, 60)
        assert training.wait(60) == 130
    os.close(leader)
    written = text.decode()
    assert "\ufffd" not in written, "the bar's codes reach the terminal"
    assert re.search(r"\repoch \d+/100000  loss [\d.e-]+ +\d+%\|.*\|  [\d.]+ steps/s  [\d:]+ left", written), written[
        -600:
    ]


def read_terminal(leader: int, seconds: float) -> bytes:
    """What a terminal is given within some seconds, or until all that write to it have ended."""
    text, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        if select.select([leader], [], [], 0.05)[0]:
            try:
                text += os.read(leader, 1 << 16)
            except OSError:  # its end
                break
    return text


def test_elsewhere_there_are_lines_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("modgraph.training.progress.LINE_EVERY", 0.0)
    assert main(["train", "m.mod", "-s", "train.epochs=2"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "left" in line]
    assert len(lines) == 8, "one for each step"
    pattern = r"epoch 2/2  step 8/8  loss [\d.e-]+  [\d.e+]+ steps/s  00:00 left"
    assert re.fullmatch(pattern, lines[-1]), lines[-1]


def test_quiet_asks_for_no_loss() -> None:
    def loss() -> float:
        raise AssertionError("a loss waits for the accelerator")

    meter = StepMeter(10, 0, 1, quiet=True)
    meter.said -= 100
    meter.advance(1, loss)
    meter.close()
