"""Compares training steps and inference of every spec between two revisions.

    python benchmarks/specs.py [--before REV] [--pairs 5] [--quick] [SPEC …]

Processor time of one thread: the minimum of many steps (forward, backward, Adam) and of many evaluations, with fresh
weights and random batches. Each pair is two processes one after the other; a ratio, now over before, is the median over
pairs. Without `--before` a revision is compared with itself, which measures the noise.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from options import parse_options
from trees import HERE, every_spec, revision, run_in

BATCH, SECONDS = 8, 1.5
WHAT = ("step", "inference")


def least(function: Callable[[], object], seconds: float) -> float:
    """Measure the least processor time of a call in seconds, after two calls that warm up."""
    taken, ends = list[float](), math.inf
    while len(taken) < 4 or time.monotonic() < ends:
        begun = time.process_time()
        function()
        taken.append(time.process_time() - begun)
        if len(taken) == 2:
            ends = time.monotonic() + seconds
    return min(taken[2:])


def measure(spec: str, seconds: float) -> dict[str, float]:
    """Measure a spec in this process."""
    import torch

    import modgraph
    from modgraph.backends.report import random_batch

    torch.set_num_threads(1)
    model = modgraph.load(spec).build()
    batch = random_batch(model, BATCH)
    learned = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=1e-6) if learned else None

    def step() -> None:
        model.compute(batch, routing=False).loss.backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()

    def inference() -> None:
        with torch.no_grad():
            model.compute(batch, losses=False)

    found = {}
    if model.graph.losses and learned:
        found["step"] = least(step, seconds)
    model.eval()
    found["inference"] = least(inference, seconds)
    return found


def compare(spec: str, trees: tuple[Path, Path], pairs: int, seconds: float) -> dict[str, float]:
    """Compute the ratios of a spec, of the second tree to the first."""
    rounds = [
        [run_in(tree, __file__, str(tree / spec), "--seconds", str(seconds)) for tree in trees] for _ in range(pairs)
    ]
    ratios = {what: [now[what] / before[what] for before, now in rounds] for what in rounds[0][0]}
    return {what: statistics.median(each) for what, each in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", metavar="SPEC")
    parser.add_argument("--before", metavar="REV", help="a revision to compare with")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parse_options(parser, specs=["specs/modular_networks.mod"], pairs=1, seconds=0.1)
    if options.child:
        print(json.dumps(measure(options.specs[0], options.seconds)))
        return
    found = dict[str, dict[str, float]]()
    with contextlib.ExitStack() as stack:
        before = stack.enter_context(revision(options.before)) if options.before else HERE
        for spec in options.specs or every_spec():
            found[spec] = compare(spec, (before, HERE), options.pairs, options.seconds)
            print(f"{spec:40}", *(f"{what} {ratio:5.2f}" for what, ratio in found[spec].items()), flush=True)
    for what in WHAT:
        ratios = [each[what] for each in found.values() if what in each]
        print(f"{what:10} geometric mean {statistics.geometric_mean(ratios):.3f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
