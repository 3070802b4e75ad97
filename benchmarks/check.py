"""Measures the overhead of commands: processor time of whole processes, as ratios.

    python benchmarks/check.py [--quick] [--rounds 7]

The processes take turns, once in each round, and the least time of each counts. A first run writes bytecode. The
baseline of `check` imports the libraries that modgraph uses. The baseline of `train` and `export` of a small model
imports torch, or torch and its table of operators for ONNX.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from options import parse_options

FOLDER = Path(__file__).parents[1]
BARE = ("-c", "import lark, networkx, yaml")
TORCH = ("-c", "import torch")
REGISTRY = ("-c", "from torch.onnx._internal.exporter._registration import ONNXRegistry as R; R.from_torchlib()")
SPEC = """
model small() {
  input x: float[4]
  target label: class[2]
  logits = x -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
RECIPE = "data: {name: npz, train: data.npz, test: data.npz}\ntrain: {epochs: 1, batch: 4}\n"
TRAIN = ("-m", "modgraph", "train", "small.mod", "--out", "run")
EXPORT = ("-m", "modgraph", "export", "run", "-o", "small.onnx", "--force")


def check(spec: str, *parameters: str) -> tuple[str, ...]:
    """Return Python's arguments for checking a spec."""
    return (
        "-m",
        "modgraph",
        "check",
        str(FOLDER / f"specs/{spec}.mod"),
        *(part for each in parameters for part in ("-s", each)),
    )


# each process, and its baseline
RATIOS = {
    "modgraph --version": (("-m", "modgraph", "--version"), BARE),
    "check smn": (check("smn"), BARE),
    "check gmoe": (check("gmoe"), BARE),
    "check sema": (check("sema"), BARE),
    "check mixtral, 96 layers by 2": (
        check("zoo/mixtral", "num_hidden_layers=96"),
        check("zoo/mixtral", "num_hidden_layers=2"),
    ),
    "check smn, 500 rounds by 10": (check("smn", "iterations=500"), check("smn", "iterations=10")),
    "train": (TRAIN, TORCH),
    "export": (EXPORT, REGISTRY),
}


def seconds(arguments: tuple[str, ...], folder: str) -> float:
    """Measure the processor time of a Python process, which must succeed."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if arguments == TRAIN:
        shutil.rmtree(Path(folder, "run"), ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    options = parse_options(parser, rounds=1)
    processes = dict.fromkeys(each for pair in RATIOS.values() for each in pair)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "small.mod").write_text(SPEC)
        Path(folder, "small.yaml").write_text(RECIPE)
        np.savez(Path(folder, "data.npz"), x=np.zeros((8, 4), np.float32), label=np.arange(8) % 2)
        for each in processes:
            seconds(each, folder)
        rounds = [{each: seconds(each, folder) for each in processes} for _ in range(options.rounds)]
    least = {each: min(times[each] for times in rounds) for each in processes}
    for name, (process, other) in RATIOS.items():
        print(f"{name:32} {least[process]:6.3f} s {least[process] / least[other]:6.2f}")


if __name__ == "__main__":
    main()
