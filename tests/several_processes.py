"""Trainings in several processes on this machine: forked, or started by torchrun."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file

from modgraph.cli import main
from tests.children import begun_in_a_child, end_of

Ended = tuple[list[int], str]


def with_torchrun(*arguments: object) -> None:
    done = run_two("-m", "modgraph", "train", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"test.accuracy"') == 1


def with_forks(*arguments: object, processes: int = 2) -> None:
    """The same in processes that need import nothing."""
    codes, text = run_forks(*arguments, processes=processes)
    assert codes == [0] * processes, text
    assert text.count('"test.accuracy"') == 1


def run_forks(*arguments: object, processes: int = 2, of_rank: Callable[[int], object] = lambda _: None) -> Ended:
    """The exit codes of processes that train together, and what they print; `of_rank` prepares each."""
    shared = {"WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes, "GROUP_RANK": 0, "TORCHELASTIC_RUN_ID": "forks"}
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}

    def train(rank: int) -> int:
        surroundings = {**shared, **address, "RANK": rank, "LOCAL_RANK": rank}
        os.environ |= {name: str(value) for name, value in surroundings.items()}
        of_rank(rank)
        return main(["train", *map(str, arguments)])

    with tempfile.TemporaryFile() as printed:
        streams = printed.fileno(), printed.fileno()
        children = [begun_in_a_child(partial(train, rank), *streams) for rank in range(processes)]
        codes = end_of(*children)
        printed.seek(0)
        return codes, printed.read().decode()


def free_port() -> int:
    """A port that nothing listens at, below those that the system gives to whoever wants any."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def run_two(*arguments: object) -> subprocess.CompletedProcess[str]:
    run = "-m torch.distributed.run --nproc-per-node=2 --master-addr=127.0.0.1".split()
    command = [sys.executable, *run, f"--master-port={free_port()}", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def weights(run: Path) -> dict[str, torch.Tensor]:
    newest = sorted((run / "checkpoints").glob("*.safetensors"))[-1]
    return {name: tensor for name, tensor in load_file(newest).items() if name.startswith("weight.")}


def close(run: Path, other: Path) -> None:
    found, expected = weights(run), weights(other)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(
            found[name], tensor, rtol=1e-7, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}"
        )
