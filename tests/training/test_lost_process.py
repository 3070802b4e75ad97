"""One of two processes is killed in the middle of a training: the other says so, and the run can be taken up."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest
from torch import Tensor

from modgraph.cli import main
from modgraph.nn.device import Transfer
from modgraph.training.engine import Engine
from tests.children import begun_in_a_child, end_of
from tests.several_processes import free_port
from tests.small_runs import go_on


def train(rank: int, victim: int, port: int, spec: Path, out: Path) -> int:
    """One of two processes; the victim dies at its sixth step."""
    shared = {"WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()}
    plain = Engine._step

    def step(engine: Engine, indices: Tensor, read: Transfer) -> None:
        if rank == victim and engine.progress.step == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        plain(engine, indices, read)

    Engine._step = step  # type: ignore[assignment, method-assign]
    settings = ["train.checkpoint_every=2", "train.steps_per_epoch=4", "train.epochs=3"]
    return main(["train", str(spec), "--out", str(out), *(word for each in settings for word in ("-s", each))])


@pytest.mark.parametrize("victim", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_the_survivor_names_what_happened_and_how_to_go_on(spec: Path, tmp_path: Path, victim: int) -> None:
    port, out = free_port(), tmp_path / "run"
    files = [(tmp_path / f"rank{rank}.txt").open("w+") for rank in range(2)]
    work = [partial(train, rank, victim, port, spec, out) for rank in range(2)]
    children = [begun_in_a_child(each, file.fileno(), file.fileno()) for each, file in zip(work, files, strict=True)]
    codes = end_of(*children)
    errors = (tmp_path / f"rank{1 - victim}.txt").read_text()
    assert codes[victim] == -signal.SIGKILL
    assert codes[1 - victim] == 1, errors
    assert "error[MG622]" in errors
    assert "fault of modgraph" not in errors
    assert f"--resume {out}" in errors
    assert go_on(out)["steps"] == 12, "the run cannot be taken up"
