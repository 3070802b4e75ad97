"""Measures the overhead of the digest: opening a bundle with the check, without it, and with ONNX Runtime only.

    python benchmarks/opening.py [--quick] [--rounds 15] [--threads 1] [SPEC …]

The three take turns within one run, on files in memory. Times are processor time, which is robust against other
processes; times and ratios are medians over rounds. "alone" is a session that ONNX Runtime opens from the path, without
the manifest.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime
from modgraph_runtime import Bundle
from options import parse_options

import modgraph

SPECS = ("specs/smn.mod", "specs/gmoe.mod")
WARM = 2


def plain_session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """Open a session as `Bundle` does, from a file that ONNX Runtime reads itself."""
    options = onnxruntime.SessionOptions()
    options.use_deterministic_compute = True
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def seconds(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def compare(path: Path, rounds: int, threads: int) -> None:
    """Print a row: size, times, and the overhead of the check."""
    ways: list[Callable[[], Any]] = [
        lambda: Bundle(path, threads),
        lambda: Bundle(path, threads, check=False),
        lambda: plain_session(path, threads),
    ]
    times = []
    for round_ in range(rounds + WARM):
        first = round_ % len(ways)
        measured = {at: seconds(ways[at]) for at in (*range(first, len(ways)), *range(first))}
        times.append([measured[at] for at in range(len(ways))])
    checked, unchecked, plain = (statistics.median(column) * 1000 for column in zip(*times[WARM:], strict=True))
    ratios = [statistics.median(row[0] / row[other] for row in times[WARM:]) for other in (1, 2)]
    row = [path.stat().st_size / 1e6, checked, unchecked, plain]
    print(path.stem.ljust(10), *(f"{value:10.1f}" for value in row), *(f"{ratio:10.3f}" for ratio in ratios))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("specs", nargs="*", metavar="SPEC", default=SPECS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parse_options(parser, specs=SPECS[:1], rounds=2)
    print(" " * 10, *(title.rjust(10) for title in ("MB", "checked", "unchecked", "alone", "/unchecked", "/alone")))
    with tempfile.TemporaryDirectory() as folder:
        for spec in options.specs:
            path = Path(folder) / f"{Path(spec).stem}.onnx"
            modgraph.export(modgraph.load(spec).build(), path)
            compare(path, options.rounds, options.threads)


if __name__ == "__main__":
    main()
