"""Compares hard selection with a dense layer of the same active FLOPs, and an E-step in one pass with its samples one
by one.

    python benchmarks/modular_layer.py [--quick] [--rounds 15]

A layer of 15 modules, one of which is chosen, maps 256 numbers to 256; the baseline is one linear map. Sizes: 1,024
tokens at once, and a scan over 32 steps of 64 examples, in torch (forward and backward) and in ONNX Runtime. The E-step
is that of the modular GRU of specs/modular_networks_lm.mod: 11 candidates of 20 windows in one pass, against 10 passes
of 20 windows (goal: at most 0.6). Ratios of medians, both sides in turn. A scan of few examples has two rows: weights
gathered by index, and sorted tokens.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from options import parse_options

import modgraph
from modgraph.data import Arrays
from modgraph.nn import DRAW
from modgraph.training.algorithms import EM
from modgraph.training.algorithms.algorithm import Setup

WIDTH, MODULES = 256, 15
TOKENS, STEPS, EXAMPLES = 1024, 32, 64

ROUTED = "pool p[modules] = linear(width) router r = categorical(1)"
LAYER = "model layer(width={width}, modules={modules}) {{ input x: float[width] {declared} y = x -> {term} output y }}"
SCAN = """model layer(width={width}, modules={modules}) {{ input xs: float[time, width] {declared}
  scan xs as x with h: float[width] {{ h = tanh(x + (h -> {term})) yield h }} as y output y }}"""


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> str:
    """Measure both in turn, and return the ratio of their medians."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for name, function in (("ours", ours), ("theirs", theirs)):
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    ours_ms, theirs_ms = (1e3 * statistics.median(each) for each in times.values())
    return f"{ours_ms / theirs_ms:5.2f}  ({ours_ms:.2f} ms against {theirs_ms:.2f} ms)"


def training(model: Any, x: torch.Tensor) -> Callable[[], None]:
    """Make a step forward and backward."""

    def step() -> None:
        model.zero_grad()
        model(x).square().sum().backward()

    return step


def runtime(model: Any, x: torch.Tensor, folder: Path, name: str) -> Callable[[], Any]:
    """Make a run of the model's bundle."""
    modgraph.export(model, folder / name)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x.numpy()}
    if len(session.get_inputs()) > 1:
        feed[session.get_inputs()[1].name] = np.full(len(x), x.shape[1])
    return lambda: session.run(None, feed)


def layers(folder: Path, rounds: int) -> None:
    sizes = {"width": WIDTH, "modules": MODULES}
    for what, spec, shape, lowerings in (
        ("layer", LAYER, (TOKENS, WIDTH), ("grouped", "per_module")),
        ("scan", SCAN, (EXAMPLES, STEPS, WIDTH), ("grouped", "gathered")),
    ):
        x = torch.randn(shape)
        dense = modgraph.loads(spec.format(declared="", term="linear(width)", **sizes))
        routed = modgraph.loads(spec.format(declared=ROUTED, term="p by r", **sizes))
        for lowering in lowerings:
            model = routed.build(lowering=lowering)
            print(f"{what:6} torch, {lowering:10} {ratio(training(model, x), training(dense.build(), x), rounds)}")
        with torch.no_grad():
            ours = runtime(routed.build(), x, folder, f"{what}.onnx")
            theirs = runtime(dense.build(), x, folder, f"{what}0.onnx")
            print(f"{what:6} ONNX Runtime      {ratio(ours, theirs, rounds)}")


def expectation(modules: int, rounds: int) -> None:
    """Make the E-step of the language model."""
    program = modgraph.load("specs/modular_networks_lm.mod", modules=modules)
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 1000, (20, 35)) for name in ("words", "next")}
    data = Arrays({**rows, "time_length": np.full(20, 35)})
    learner: Any = EM(samples=10).learner(Setup(program.ir, {"train": data}, 0, 20, 1))
    model = modgraph.backends.torch.build(learner.graph, asked=learner.wanted)  # type: ignore[attr-defined]
    batch = {name: torch.from_numpy(array) for name, array in data.values.items()}
    samples = {
        name: torch.full_like(table, DRAW) for name, table in learner.force_choices(torch.arange(20), batch).items()
    }

    @torch.no_grad()
    def one_by_one() -> None:
        for _ in range(10):
            model.eval().results({**batch, **samples}, learner.wanted)

    taken = ratio(lambda: learner.expectation(model, 0), one_by_one, rounds)
    print(f"E-step, M = {modules:2}, against 10 passes: {taken}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--modules", type=int, nargs="+", default=[5, 15], help="batch of the language model")
    options = parse_options(parser, rounds=1, modules=[2])
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        layers(Path(folder), options.rounds)
    for modules in options.modules:
        expectation(modules, options.rounds)


if __name__ == "__main__":
    main()
