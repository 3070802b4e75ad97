"""Compares the lowerings of a route over edges, where more and more pairs of nodes are joined.

    python benchmarks/edges.py [--quick] [--nodes 64 256 1024] [--batch 4] [--rounds 15] [--threads 1]

A step is forward and backward of `x -> linear(64) by w over link`. The floor does the same in plain torch with a matrix
over all pairs of nodes that is made of the edges. Times are medians of processor time, divided by those of the floor;
the goal is that `by_density`, which a model has by default, is within a fifth of the best.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from options import parse_options
from torch import Tensor, nn

import modgraph
from modgraph.ops.edges import LOWERINGS

WIDTH = 64
SPEC = f"""model edges() {{ input x: float[node, {WIDTH}] input link: edge[node, node] input w: float[link]
  output y = x -> linear({WIDTH}) by w over link }}"""
SHARES = (0.01, 0.1, 1.0)  # of all pairs of nodes


def measure(step: Callable[[], Tensor], rounds: int) -> float:
    """Return the median milliseconds of a step, after one to warm up."""
    found = []
    for _ in range(rounds + 1):
        start = time.process_time()
        step().sum().backward()  # type: ignore[no-untyped-call]
        found.append(time.process_time() - start)
    return 1000 * statistics.median(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parse_options(parser, nodes=[16], rounds=1)
    torch.set_num_threads(options.threads)
    models = {name: modgraph.loads(SPEC).build(lowering=name) for name in LOWERINGS}
    layer = nn.Linear(WIDTH, WIDTH)
    print(f"{'nodes':>5} {'joined':>6} {'floor ms':>9}" + "".join(f"{name:>17}" for name in models))
    for nodes in options.nodes:
        for share in SHARES:
            count = max(1, round(share * nodes * nodes))
            x, w = torch.randn(options.batch, nodes, WIDTH), torch.randn(options.batch, count)
            link = torch.randint(nodes, (options.batch, count, 2))

            def multiply(x: Tensor = x, link: Tensor = link, w: Tensor = w, nodes: int = nodes) -> Tensor:
                pairs = link[..., 1] * nodes + link[..., 0]
                joined = x.new_zeros(len(x), nodes * nodes).scatter_add(1, pairs, w)
                return joined.reshape(len(x), nodes, nodes) @ layer(x)

            floor = measure(multiply, options.rounds)
            batch = {"x": x, "link": link, "w": w}
            found = [
                measure(lambda model=model, batch=batch: model.compute(batch).outputs["y"], options.rounds)  # type: ignore[misc]
                for model in models.values()
            ]
            print(f"{nodes:5} {share:6.0%} {floor:9.2f}" + "".join(f"{each / floor:17.2f}" for each in found))


if __name__ == "__main__":
    main()
