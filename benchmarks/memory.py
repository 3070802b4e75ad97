"""Compares the estimate of `cost --memory`, which uses no numbers, with a real step.

    python benchmarks/memory.py [--quick] [--specs smn gmoe] [--batch 8] [--threads 2]

Every spec at its full size, a batch of random examples, two steps of Adam. "kept" are the bytes that autograd keeps for
the backward pass, each storage once and without weights and batch; "at once" is the maximum of all tensors in the
second step.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

import torch
from modgraph_runtime.files import format_bytes
from options import parse_options

import modgraph
from modgraph.backends.report import SYMBOLIC_LENGTH, random_batch
from modgraph.backends.torch.step_memory import memory_of
from modgraph.inspect.cost import TrainingStep

sys.path.append(str(Path(__file__).parents[1]))  # the checkout, which contains the tests
from tests.measured_memory import MeasuredStep

SPECS = (
    "smn",
    "smn_parity",
    "gmoe",
    "gmoe_digits",
    "modular_networks",
    "modular_networks_images",
    "modular_networks_lm",
    "mt_rmn",
    "sema",
    "sema_backbone",
)


def row(name: str, batch: int) -> str:
    """Measure a spec, and return its line of the table."""
    step = MeasuredStep.of(modgraph.load(f"specs/{name}.mod").ir)
    counted = memory_of(step.graph, TrainingStep(batch), {"time": SYMBOLIC_LENGTH})
    examples = random_batch(step.model, batch)
    kept, most = step.kept(examples), step.peak(examples, torch.optim.Adam, fused=True)
    pairs = ((counted.activations, kept), (counted.peak, most))
    cells = [f"{format_bytes(one)} | {format_bytes(other)} | {one / other:.2f}" for one, other in pairs]
    return f"| {name} | {batch} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", nargs="+", default=SPECS, choices=SPECS, metavar="SPEC")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    options = parse_options(parser, specs=["smn_parity"], batch=2)
    torch.set_num_threads(options.threads)
    print("| spec | batch | kept: estimated | measured | ratio | at once: estimated | measured | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.specs:
        for batch in (1, options.batch):
            print(row(name, batch), flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
