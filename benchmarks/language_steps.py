"""Measures how much longer a training step of a language model with experts takes than one of its dense model.

    python benchmarks/language_steps.py [--rounds 60]

The models of `docs/sweeps/language_sweep.yaml` take turns on the same batches in one process, so that other load falls
on all of them. A ratio is the median over rounds. The last column is how many steps take the seconds of a dense epoch.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from options import parse_options

from modgraph.training.run import start_run

SPEC = "docs/sweeps/language.mod"
HIDDEN = {"small": (64, {1: 256, 4: 127, 16: 124}), "large": (128, {1: 512, 4: 255, 16: 252})}  # by experts
WARM = 3


def step_times(dim: int, hidden: dict[int, int], rounds: int, folder: Path) -> dict[int, list[float]]:
    """Measure the seconds of each round's step, by number of experts."""
    times: dict[int, list[float]] = {experts: [] for experts in hidden}
    with ExitStack() as stack:

        def steps(experts: int, width: int) -> Iterator[Any]:
            parameters = {"dim": dim, "hidden": width, "experts": experts}
            engine = stack.enter_context(start_run(SPEC, None, parameters, str(folder / f"{dim}-{experts}")))
            order = engine.order.draw(0, 0)
            for indices, read in stack.enter_context(engine.reader.reading(engine.phase.data, order, 0)):
                start = time.perf_counter()
                engine._step(indices, read)
                yield time.perf_counter() - start

        running = {experts: steps(experts, width) for experts, width in hidden.items()}
        for _ in range(rounds + WARM):
            for experts, each in running.items():
                times[experts].append(next(each))
    return {experts: each[WARM:] for experts, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--steps", type=int, default=416, help="steps of a dense epoch")
    options = parse_options(parser, rounds=2)
    print("size   experts  step ms  ratio  steps")
    for size, (dim, hidden) in HIDDEN.items():
        with tempfile.TemporaryDirectory() as folder:
            times = step_times(dim, hidden, options.rounds, Path(folder))
        for experts, seconds in times.items():
            ratio = statistics.median(each / dense for each, dense in zip(seconds, times[1], strict=True))
            step = statistics.median(seconds) * 1000
            print(f"{size:6} {experts:7} {step:8.1f} {ratio:6.3f} {round(options.steps / ratio):6}")


if __name__ == "__main__":
    main()
