"""Measures `torch.compile` on specs at their own sizes: graphs, compile time, and speed-up.

    python benchmarks/compiled.py [--quick] [--specs smn gmoe_digits] [--lowering masked] [--batch 32] [--rounds 15]

Forward is the model in evaluation mode; a step is forward, backward and Adam on one fixed batch. Compiled and plain
models take turns within one run. A ratio, compiled to plain, is the median over rounds. Compile times are processor
time of this process with an empty cache, without the C++ compilers that it starts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config
from options import parse_options
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend

import modgraph
from modgraph.backends.torch import Model

STEPS = 8  # of axes of any length: scans and recurrent layers are unrolled
SPECS = {
    "smn": {},
    "sema_backbone": {},
    "gmoe_digits": {},
    "modular_networks_images": {},
    "modular_networks_lm": {},
    "mt_rmn": {},
    "zoo/expert_choice": {},
    "zoo/mixtral": {},
    "zoo/soft_moe": {},
    "zoo/switch": {},
}


class Loss(nn.Module):
    """The module of a step: returns the loss."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        return self.model.compute(batch).loss


class Outputs(Loss):
    def forward(self, batch: dict[str, Tensor]) -> Any:
        return list(self.model.compute(batch, losses=False).outputs.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--specs", nargs="+", default=None, choices=SPECS, metavar="SPEC")
    parser.add_argument("--lowering", default=None)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parse_options(parser, specs=["smn"], rounds=1, batch=4)
    torch.set_num_threads(options.threads)
    torch._inductor.config.layout_optimization = False  # else convolutions of routed messages fail in torch
    print("| spec | graphs | compiling forward | forward | compiling a step | step |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache  # discards kernels of earlier runs
        for name in options.specs or SPECS:
            print(row(name, options.lowering, options.batch, options.rounds), flush=True)


def row(name: str, lowering: str | None, size: int, rounds: int) -> str:
    """Measure a spec, and print its line."""
    model = modgraph.load(f"specs/{name}.mod", **SPECS[name]).build(lowering=lowering)
    batch = batch_of(model, size)
    graphs, parts = [], [name]
    for kind, training in ((Outputs, False), (Loss, True)):
        torch.compiler.reset()
        model.train(training)
        plain, counter = kind(model), CompileCounterWithBackend("inductor")
        compiled = torch.compile(plain, backend=counter, fullgraph=True)
        runs = [call_of(each, model, batch, training) for each in (plain, compiled)]
        started = time.process_time()
        runs[1]()
        compiling = time.process_time() - started
        parts += [f"{compiling:.0f} s", f"{ratio(*runs, rounds):.2f}"]
        graphs.append(str(counter.frame_count))
    return f"| {' | '.join([parts[0], ' and '.join(graphs), *parts[1:]])} |"


def call_of(module: nn.Module, model: Model, batch: dict[str, Tensor], training: bool) -> Callable[[], Any]:
    """Make a call of a module, or a step with it."""
    if not training:
        return torch.inference_mode()(lambda: module(batch))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)

    def step() -> None:
        optimizer.zero_grad()
        module(batch).backward()
        optimizer.step()

    return step


def ratio(plain: Callable[[], Any], compiled: Callable[[], Any], rounds: int) -> float:
    """Measure the median over rounds of compiled to plain."""
    times = [timed(plain, 1) for _ in range(3)]
    calls = max(1, int(0.2 / min(times)))
    timed(compiled, 2)
    return statistics.median(timed(compiled, calls) / timed(plain, calls) for _ in range(rounds))


def timed(call: Callable[[], Any], calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - started


def batch_of(model: Model, size: int) -> dict[str, Tensor]:
    """Make random inputs and targets."""
    generator, found = torch.Generator().manual_seed(0), {}
    for name, type_ in {**model.graph.input_types, **model.graph.target_types}.items():
        shape = (size, *(axis.size or STEPS for axis in type_.shape))
        if type_.size is not None:
            found[name] = torch.randint(type_.size, shape, generator=generator)
        elif type_.dtype != "length":
            found[name] = torch.randn(shape, generator=generator)
    return found


if __name__ == "__main__":
    main()
