"""Compares rows that are looked up in large arrays with the product over all rows.

    python benchmarks/lookups.py [--quick] [--rows 1000000] [--tokens 32] [--threads 1]

Each token reads 32 rows of two weights [rows, 64] and sums the products of one neuron each (PEER). "pool" is the same
as a pool of modules that ids choose. "forward" is inference, "both" a forward and a backward pass. The floor multiplies
each token by all rows. Times are the least of some rounds, divided by those of the floor; the goal is 0.01.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from options import parse_options

import modgraph
from modgraph.backends.torch import Model

READ, WIDTH = 32, 64
WEIGHTS = """input x: float[64]
  weight down: float[rows, 64] = normal(0.02) weight up: float[rows, 64] = normal(0.02)"""
DENSE = f"""model dense(rows) {{ {WEIGHTS}
  a = (down, x) -> contract -> gelu output y = (a, up -> transpose) -> contract }}"""
LOOKUP = f"""model rows(rows, sparse) {{ {WEIGHTS} input ids: token[slot=32, rows]
  a = ((down, ids) -> lookup(sparse=sparse), x) -> contract -> gelu
  output y = (up, ids) -> lookup(sparse=sparse) by a over slot }}"""

POOL = """model modules(rows) { input x: float[64] input ids: token[slot=32, rows]
  pool neuron[rows] = linear(1, bias=false) -> gelu -> linear(64, bias=false)
  output y = x -> neuron by (ids -> one_hot(neuron) -> sum(axis=slot)) }"""


def measure(run: Callable[[], object], rounds: int) -> float:
    """Return the least milliseconds of some rounds, after one to warm up."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return 1000 * min(found[1:])


def measure_passes(model: Model, batch: dict[str, torch.Tensor], rounds: int) -> tuple[float, float]:
    """Return the milliseconds of inference, and of a forward and a backward pass."""

    def learn() -> None:
        model.compute(batch, losses=False).outputs["y"].sum().backward()  # type: ignore[no-untyped-call]
        model.zero_grad(set_to_none=True)

    with torch.no_grad():
        forward = measure(lambda: model.compute(batch, losses=False), rounds)
    return forward, measure(learn, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parse_options(parser, rows=1000, tokens=2, rounds=1)
    torch.set_num_threads(options.threads)
    batch = {"x": torch.randn(options.tokens, WIDTH), "ids": torch.randint(options.rows, (options.tokens, READ))}
    floor = modgraph.loads(DENSE, rows=options.rows).build()
    least = measure_passes(floor, {"x": batch["x"]}, options.rounds)
    del floor
    print(f"{'gradient':14}{'forward':>10}{'both':>10}   of {least[0]:.1f} and {least[1]:.1f} ms")
    for name, sparse in (("sparse", True), ("dense", False), ("pool, sparse", True), ("pool, dense", False)):
        of_pool = name.startswith("pool")
        parameters = {} if of_pool else {"sparse": sparse}
        model = modgraph.loads(POOL if of_pool else LOOKUP, rows=options.rows, **parameters).build()
        if of_pool:
            vars(model.lookup("neuron"))["sparse"] = sparse
        found = measure_passes(model, batch, options.rounds)
        print(f"{name:14}" + "".join(f"{each / floor:10.4f}" for each, floor in zip(found, least, strict=True)))


if __name__ == "__main__":
    main()
