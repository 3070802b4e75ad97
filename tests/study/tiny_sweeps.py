"""Sweeps of a tiny model, in processes of their own, and what they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SPEC = """
model tiny(hidden=4) {
  input  x: float[6]
  target label: class[3]
  logits = x -> linear(hidden) -> relu -> dropout(0.2) -> linear(3)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE = """
data: {name: npz, train: tiny.npz, test: tiny.npz}
train: {epochs: 3, batch: 16, checkpoint_every: 3, optimizer: {name: adam, lr: 0.01}}
"""
CHECKOUT = Path(__file__).parents[2]


def write_tiny(folder: Path) -> Path:
    """Write a tiny spec, its recipe and its data."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 6)).astype(np.float32)
    np.savez(folder / "tiny.npz", x=x, label=x[:, :3].argmax(1))
    (folder / "tiny.mod").write_text(SPEC)
    (folder / "tiny.yaml").write_text(RECIPE)
    return folder / "tiny.mod"


def start_sweep(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start a sweep in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "modgraph", "sweep", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str], signal: int | None = None) -> tuple[int, str, str]:
    """Send a signal to a sweep, and return its exit code and what it printed, once it has ended."""
    if signal is not None:
        process.send_signal(signal)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def find_workers(sweep: subprocess.Popen[str]) -> list[int]:
    """The processes in which a sweep trains."""
    try:
        return [*map(int, Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split())]
    except OSError:
        return []


def wait_for(holds: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until a condition holds."""
    stop = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < stop, "it does not happen"
        time.sleep(0.02)


def read_counts(out: str) -> dict[str, Any]:
    """The JSON object in the last line."""
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def files_of(run: Path) -> dict[str, bytes]:
    """The files of a run by name, but for locks and what measures time."""
    names = (path for path in sorted(run.rglob("*")) if path.is_file())
    found = {path.relative_to(run).as_posix(): path for path in names}
    clocks = (".lock", "seconds.jsonl", "tensorboard")
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(clocks)}


def runs_in(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files of each run below a folder, by its name."""
    found = {path.parent for path in folder.rglob("run.json")}
    return {run.relative_to(folder).as_posix(): files_of(run) for run in sorted(found)}
