"""Measures the optimisations of training steps on an accelerator one by one.

    python benchmarks/accelerator.py [--quick] [--device cuda] [--steps 50] [--batch 16] [--spec specs/gmoe_digits.mod]

Variants take turns in one process. For each step it prints milliseconds until the device is done, and of the processor.
Variants: every step checks its loss and gradients, instead of every 50th; the modules of a sparse pool run one after
another, instead of as one grouped product (in bfloat16); batches are read between steps, instead of by a thread.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from options import parse_options

from modgraph.nn import pool as pools
from modgraph.training.divergence import FiniteCheck
from modgraph.training.engine import Engine
from modgraph.training.run import start_run

WARM = 5


@contextmanager
def as_it_is(engine: Engine) -> Iterator[None]:
    yield


@contextmanager
def looking_at_every_step(engine: Engine) -> Iterator[None]:
    before, engine.finite = engine.finite, FiniteCheck(1)
    yield
    engine.finite = before


@contextmanager
def one_after_another(engine: Engine) -> Iterator[None]:
    with patch.object(pools, "pays", lambda x, modules: False):
        yield


@contextmanager
def read_between_steps(engine: Engine) -> Iterator[None]:
    read = engine.reader.read

    def plainly(data: Any, order: Any, since: int) -> Any:
        return nullcontext((indices, read(data, indices, step)) for step, indices in enumerate(order, since))

    with patch.object(engine.reader, "reading", plainly):
        yield


VARIANTS: dict[str, Callable[[Engine], Any]] = {
    "as it is": as_it_is,
    "a look at every step": looking_at_every_step,
    "one module after another": one_after_another,
    "read between steps": read_between_steps,
}


def steps(engine: Engine, count: int) -> tuple[float, float]:
    """Measure the milliseconds of a step, and of the processor in it."""
    order = engine.order.draw(engine.train.seed, 0)
    device = engine.processes.device
    with engine.reader.reading(engine.phase.data, order, engine.progress.step) as examples:
        for at, (indices, read) in enumerate(examples):
            if at == WARM:
                _wait(device)
                start, busy = time.perf_counter(), time.process_time()
            if at == WARM + count:
                break
            engine._step(indices, read)
        _wait(device)
    done = min(at, WARM + count) - WARM
    return 1e3 * (time.perf_counter() - start) / done, 1e3 * (time.process_time() - busy) / done


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--spec", default="specs/gmoe_digits.mod")
    parser.add_argument("--rounds", type=int, default=3)
    given = parse_options(parser, device="cpu", steps=2, rounds=1)
    print(f"{given.spec}, {torch.__version__}, {given.device}")
    print(f"{'precision':10} {'':26} {'ms':>8} {'processor':>10}")
    for precision in ("float32", "bfloat16"):
        options = {"train.device": given.device, "train.precision": precision, "train.batch": given.batch}
        with (
            tempfile.TemporaryDirectory() as folder,
            start_run(given.spec, None, options, str(Path(folder) / "run")) as engine,
        ):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
            for _ in range(given.rounds):
                for name, variant in VARIANTS.items():
                    with variant(engine):
                        found[name].append(steps(engine, given.steps))
            for name, times in found.items():
                wall, busy = min(times)
                print(f"{precision:10} {name:26} {wall:8.2f} {busy:10.2f}")


if __name__ == "__main__":
    main()
