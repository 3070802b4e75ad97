"""Measures the overhead of checking gradients: steps with and without the check take turns in one training.

    python benchmarks/step_checks.py [--rounds 3]

The ratio of a round is the median over pairs of neighbouring steps. With gradient clipping the check costs nothing,
since clipping computes their norm anyway.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from options import parse_options
from torch import Tensor

from modgraph.training.run import start_run

BATCH, FEATURES, CLASSES, WARM = 64, 64, 10, 5
STEPS = {56: 1200, 3000: 160}  # by the width of the net
SPEC = """
model net(width) {{
  input  x: float[{features}]
  target y: class[{classes}]
  z = x -> linear(width) -> relu -> linear(width) -> relu -> linear({classes})
  output z
  loss cross_entropy(z, y)
}}
"""


def written(folder: Path, steps: int) -> Path:
    """Write a spec with its recipe, and data for so many steps."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH * steps, FEATURES)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, y=rng.integers(0, CLASSES, len(x)))
    (folder / "net.mod").write_text(SPEC.format(features=FEATURES, classes=CLASSES))
    data = f"{{name: npz, train: {folder}/data.npz, test_fraction: 0.01}}"
    (folder / "net.yaml").write_text(f"data: {data}\ntrain: {{epochs: 1, batch: {BATCH}}}\n")
    return folder / "net.mod"


def step_times(width: int, folder: Path) -> list[list[float]]:
    """Measure the seconds of steps without the check and with it."""
    times: list[list[float]] = [[], []]
    spec = written(folder, STEPS[width])
    with start_run(str(spec), None, {"width": width}, str(folder / "run")) as engine:
        plain, check = engine._step, engine.finite.gradients

        def timed(indices: Tensor, read: Any) -> None:
            with_check = len(times[0]) > len(times[1])
            engine.finite.gradients = check if with_check else lambda *_: None  # type: ignore[method-assign]
            start = time.perf_counter()
            plain(indices, read)
            times[with_check].append(time.perf_counter() - start)

        engine._step = timed  # type: ignore[method-assign]
        with contextlib.redirect_stderr(io.StringIO()):
            engine._epoch()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--widths", type=int, nargs="+", default=[*STEPS], choices=STEPS)
    options = parse_options(parser, rounds=1, widths=[56])
    print("width  without ms  with ms  ratio")
    for width in options.widths:
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                pairs = list(zip(*step_times(width, Path(folder)), strict=False))[WARM:]
            without, with_check = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
            ratio = statistics.median(after / before for before, after in pairs)
            print(f"{width:5} {without:11.3f} {with_check:8.3f} {ratio:6.3f}")


if __name__ == "__main__":
    main()
