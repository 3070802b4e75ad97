"""Compares a step with stored pools, one tensor for each weight, with one that has the weights of each module.

    python benchmarks/pools.py [--quick] [--modules 8 64 1024] [--tokens 16 2048] [--widths 8 256] [--rounds 9]

Each of T tokens of width 64 goes to 2 of M modules, `linear(W) -> relu -> linear(64)`, by cosine. A step is forward,
backward and fused AdamW, on one thread. Times are medians of processor time, for a step and for inference; memory is
what a process needs at most for the model and three steps. `stored` is divided by what separate modules take. `auto` is
what a training does by itself. The goal: `auto` is nowhere slower than separate modules.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from options import parse_options

import modgraph
from modgraph.backends.torch import Model
from modgraph.backends.torch.stored import StoredPool

WIDTH = 64
SPEC = f"""model pools(modules=8, width=8, tokens=16) {{
  input x: float[tokens, {WIDTH}]
  pool expert[modules] = linear(width) -> relu -> linear({WIDTH})
  router choose = cosine(2)
  output y = x -> expert by choose
}}"""
WAYS = ("modules", "stored")
COLUMNS = ("step ms", "infer ms", "MB")


def take_step(model: Model, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    optimizer.zero_grad()
    model(x).square().sum().backward()  # type: ignore[union-attr]
    optimizer.step()


def measure(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each function, in turn, after two rounds to warm up."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds + 2):
        for name, function in functions.items():
            start = time.process_time()
            function()
            times[name].append(time.process_time() - start)
    return {name: 1000 * statistics.median(each[2:]) for name, each in times.items()}


def measure_memory(program: modgraph.Program, way: str, x: torch.Tensor) -> float:
    """Return the peak memory of a model and three steps in MB, measured in a child process."""
    read, write = os.pipe()
    if not os.fork():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        model = program.build(pools=way)
        optimizer = make_optimizer(model)
        for _ in range(3):
            take_step(model, optimizer, x)
        os.write(write, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        found = float(file.read()) / 1024
    os.wait()
    return found


def make_optimizer(model: Model) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), fused=True)


def infer(model: Model, x: torch.Tensor) -> None:
    with torch.no_grad():
        model(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=int, nargs="+", default=[8, 64, 1024])
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 2048])
    parser.add_argument("--widths", type=int, nargs="+", default=[8, 256])
    parser.add_argument("--rounds", type=int, default=9)
    options = parse_options(parser, modules=[4, 8], tokens=[4], widths=[8], rounds=1)
    torch.set_num_threads(1)
    cases = [*itertools.product(options.widths, options.modules, options.tokens)]
    programs = {
        case: modgraph.loads(SPEC, **dict(zip(("width", "modules", "tokens"), case, strict=True))) for case in cases
    }
    inputs = {case: torch.randn(1, case[2], WIDTH) for case in cases}
    memory = {  # before the first backward pass, after which torch cannot fork
        case: {way: measure_memory(programs[case], way, inputs[case]) for way in WAYS} for case in cases
    }
    print(f"{'modules':>7} {'tokens':>6} {'width':>5}", *(f"{each:>8} {'stored':>6}" for each in COLUMNS), " auto")
    for case, program in programs.items():
        models, x = {way: program.build(pools=way) for way in WAYS}, inputs[case]
        optimizers = {way: make_optimizer(each) for way, each in models.items()}
        step = measure({way: partial(take_step, models[way], optimizers[way], x) for way in WAYS}, options.rounds)
        inference = measure({way: partial(infer, models[way], x) for way in WAYS}, options.rounds)
        auto = WAYS[isinstance(program.build().lookup("expert"), StoredPool)]
        width, modules, tokens = case
        found = (step, inference, memory[case])
        cells = (f"{each['modules']:8.2f} {each['stored'] / max(each['modules'], 1e-9):6.2f}" for each in found)
        print(f"{modules:7} {tokens:6} {width:5}", *cells, f" {auto}", flush=True)
        del models, optimizers
        gc.collect()


if __name__ == "__main__":
    main()
