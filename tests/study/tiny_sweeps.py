"""Sweeps of a tiny model, as commands in processes of their own, and how they compare."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
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
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Ended:
    """How a command ended, and the JSON object in its last line."""

    code: int
    out: str
    err: str

    @property
    def counts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


def write_tiny(folder: Path) -> Path:
    """Write a tiny spec, its recipe and its data."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 6)).astype(np.float32)
    np.savez(folder / "tiny.npz", x=x, label=x[:, :3].argmax(1))
    (folder / "tiny.mod").write_text(SPEC)
    (folder / "tiny.yaml").write_text(RECIPE)
    return folder / "tiny.mod"


def start_sweep(folder: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    """Start a sweep of the tiny spec in a process of its own."""
    command = [sys.executable, "-P", "-m", "modgraph", "sweep", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, text=True, **{**pipes, **options})


def sweep(folder: Path, *words: str) -> Ended:
    """Run a sweep of the tiny spec to its end."""
    process = start_sweep(folder, *words)
    out, err = process.communicate(timeout=300)
    return Ended(process.returncode, out, err)


def files_of(run: Path) -> dict[str, bytes]:
    """The files of a run that make it what it is, by name: no locks, and nothing that measures time."""
    names = (path for path in sorted(run.rglob("*")) if path.is_file())
    found = {path.relative_to(run).as_posix(): path.read_bytes() for path in names}
    return {name: content for name, content in found.items() if not _is_of_clock(name)}


def _is_of_clock(name: str) -> bool:
    return name.startswith((".", "tensorboard")) or name == "seconds.jsonl"


def runs_in(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files of each run below the folder of a sweep, by its name."""
    found = {path.parent for path in folder.rglob("run.json")}
    return {run.relative_to(folder).as_posix(): files_of(run) for run in sorted(found)}
