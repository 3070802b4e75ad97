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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from options import parse_options

from modgraph.study.file import read_sweep_file
from modgraph.study.plan import Point, make_plan
from modgraph.training.run import start_run

FILE = "docs/sweeps/language_sweep.yaml"
SIZES = ("small", "large")
DENSE, WARM = 1, 3


def step_times(points: Sequence[Point], rounds: int, folder: Path) -> tuple[dict[int, list[float]], int]:
    """Measure the seconds of each round's step, by number of experts. Return also the steps of an epoch."""
    with ExitStack() as stack:

        def steps(engine: Any) -> Iterator[float]:
            order = engine.order.draw(0, 0)
            for indices, read in stack.enter_context(engine.reader.reading(engine.phase.data, order, 0)):
                start = time.perf_counter()
                engine._step(indices, read)
                yield time.perf_counter() - start

        engines = {
            each.values["experts"]: stack.enter_context(
                start_run(str(each.spec), None, dict(each.overrides), str(folder / each.run))
            )
            for each in points
        }
        running = {experts: steps(engine) for experts, engine in engines.items()}
        measured = [{experts: next(each) for experts, each in running.items()} for _ in range(rounds + WARM)][WARM:]
    return {experts: [each[experts] for each in measured] for experts in engines}, engines[DENSE].order.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--sizes", nargs="+", default=[*SIZES], choices=SIZES)
    options = parse_options(parser, rounds=1, sizes=["small"])
    print("size   experts  step ms  ratio  steps")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            plan = make_plan(read_sweep_file(FILE).sweeps, Path(folder))
            points = [each for each in plan.points if each.sweep == size and each.values["train.seed"] == 0]
            times, steps = step_times(points, options.rounds, Path(folder))
        for experts, seconds in times.items():
            ratio = statistics.median(each / dense for each, dense in zip(seconds, times[DENSE], strict=True))
            step = statistics.median(seconds) * 1000
            print(f"{size:6} {experts:7} {step:8.1f} {ratio:6.3f} {round(steps / ratio):6}")


if __name__ == "__main__":
    main()
