"""Compares GMoE with the plain vision transformer: overhead of the mixtures in a step and in inference.

    python benchmarks/gmoe_step.py [--quick] [--batch 8] [--rounds 9] [--threads 1] [-s k=2]

A step is forward, backward and Adam; inference is the model in ONNX Runtime. The two models take turns within one run,
and a ratio is the median over rounds. Goals for GMoE-S/16 at batch 8: 1.12 for a step, 1.10 in ONNX Runtime.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from modgraph_runtime import Bundle
from options import parse_options
from torch import Tensor

import modgraph
from modgraph.cli.common import add_options, read_overrides

SPEC = "specs/gmoe.mod"
WARM = 2


def step_of(model: modgraph.Model, batch: dict[str, Tensor]) -> Callable[[], None]:
    """Make a training step on one fixed batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-5)
    model.train()

    def step() -> None:
        optimizer.zero_grad()
        model.compute(batch).loss.backward()
        optimizer.step()

    return step


def inference_of(model: modgraph.Model, batch: dict[str, Tensor], threads: int) -> Callable[[], Any]:
    """Make a call of the model's bundle in ONNX Runtime."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        modgraph.export(model, path)
        bundle = Bundle(path, threads)
    return partial(bundle.run, {"image": batch["image"].numpy()})


def torch_inference_of(model: modgraph.Model, batch: dict[str, Tensor]) -> Callable[[], Any]:
    """Make a call of the model in torch, in evaluation mode."""

    def infer() -> None:
        model.eval()
        with torch.inference_mode():
            model.compute(batch, losses=False)

    return infer


def compare(name: str, ours: Callable[[], Any], plain: Callable[[], Any], rounds: int) -> None:
    """Measure both in turn, and print their times and ratio."""
    times: list[tuple[float, float]] = []
    for round_ in range(rounds + WARM):
        # the second finds the processor warm, so each is first every other time
        pair = {which: seconds(which) for which in ((ours, plain) if round_ % 2 else (plain, ours))}
        if round_ >= WARM:
            times.append((pair[ours], pair[plain]))
    mixture, dense = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
    ratio = statistics.median(a / b for a, b in times)
    print(f"{name:14} {dense:10.0f} {mixture:10.0f} {ratio:7.3f}", flush=True)


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="GMoE against the plain vision transformer.")
    add_options(parser, "set")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    options = parse_options(parser, batch=1, rounds=1, set=["depth=2", "sparse=[1]", "dim=24", "heads=2"])
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    batch = {"image": torch.randn(options.batch, 3, 224, 224), "label": torch.randint(345, (options.batch,))}
    given = read_overrides(options.set)
    mixture, plain = (modgraph.load(SPEC, **each).build() for each in (given, {**given, "sparse": []}))
    print(f"{'':14} {'ViT ms':>10} {'GMoE ms':>10} {'ratio':>7}")
    compare("inference", torch_inference_of(mixture, batch), torch_inference_of(plain, batch), options.rounds)
    bundles = [inference_of(model, batch, options.threads) for model in (mixture, plain)]
    compare("ONNX Runtime", *bundles, options.rounds)
    compare("training step", step_of(mixture, batch), step_of(plain, batch), options.rounds)


if __name__ == "__main__":
    main()
