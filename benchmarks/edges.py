"""Compares the lowerings of a route over edges, where more and more pairs of nodes are joined.

    python benchmarks/edges.py [--quick] [--nodes 64 256 1024] [--batch 4] [--rounds 15] [--threads 1]

A step is forward and backward of `x -> linear(64) by w over link`. The floor does the same in plain torch with a matrix
over all pairs of nodes that is made of the edges. Lowerings take turns, and times are the least of processor time,
divided by those of the floor. A model picks a lowering at each call; the goal is at most 1.2 of the best.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from options import parse_options
from torch import Tensor, nn

import modgraph
from modgraph.nn import edges, message_passing
from modgraph.ops.edges import MESSAGE_PASSING, SCATTER

WIDTH = 64
SPEC = f"""model edges() {{ input x: float[node, {WIDTH}] input link: edge[node, node] input w: float[link]
  output y = x -> linear({WIDTH}) by w over link }}"""
SHARES = (0.01, 0.1, 1.0)  # of all pairs of nodes
LEAST = 0.05  # seconds of a turn, so that short steps are repeated
Step = Callable[[], Tensor]


def measure(steps: dict[str, Step], rounds: int) -> dict[str, float]:
    """Return the least milliseconds of each step in turns of several, after one to warm up."""
    found = {name: float("inf") for name in steps}
    for _ in range(rounds + 1):
        for name, step in steps.items():
            done, start = 0, time.process_time()
            while not done or time.process_time() - start < LEAST * (rounds > 1):
                step().sum().backward()  # type: ignore[no-untyped-call]
                done += 1
            found[name] = min(found[name], 1000 * (time.process_time() - start) / done)
    return found


def make_steps(nodes: int, share: float, batch: int) -> tuple[Step, Step, dict[str, Step]]:
    """Return the floor, the step of a model by itself, and that of each lowering."""
    count = max(1, round(share * nodes * nodes))
    x, w, link = torch.randn(batch, nodes, WIDTH), torch.randn(batch, count), torch.randint(nodes, (batch, count, 2))
    layer = nn.Linear(WIDTH, WIDTH)

    def multiply() -> Tensor:
        pairs = link[..., 1] * nodes + link[..., 0]
        joined = x.new_zeros(batch, nodes * nodes).scatter_add(1, pairs, w)
        return joined.reshape(batch, nodes, nodes) @ layer(x)

    def compute(lowering: str | None = None) -> Step:
        model = modgraph.loads(SPEC).build(lowering=lowering)
        return lambda: model.compute({"x": x, "link": link, "w": w}).outputs["y"]

    by_itself = compute()

    def by_matrices() -> Tensor:
        with patch.object(message_passing, "are_dense", lambda *sizes: True):
            return by_itself()

    lowerings = {"matrices": by_matrices, "messages": compute(MESSAGE_PASSING), "scatter": compute(SCATTER)}
    return multiply, by_itself, lowerings


def find_pick(step: Step) -> str:
    """Return the lowering that a model picks."""
    with (
        patch.object(message_passing, "sum_by_matrices", wraps=edges.sum_by_matrices) as multiply,
        patch.object(edges.EdgeScatter, "forward", autospec=True, side_effect=edges.EdgeScatter.forward) as scatter,
    ):
        step()
    return "matrices" if multiply.called else "scatter" if scatter.called else "messages"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parse_options(parser, nodes=[16], rounds=1)
    torch.set_num_threads(options.threads)
    names = ("matrices", "messages", "scatter")
    heads = "".join(f"{name:>9}" for name in names)
    print(f"{'nodes':>5} {'joined':>6} {'floor ms':>9}{heads}  {'pick':9}{'':>5} {'to the best'}")
    for nodes in options.nodes:
        for share in SHARES:
            floor, own, lowerings = make_steps(nodes, share, options.batch)
            found = measure({"floor": floor, "own": own, **lowerings}, options.rounds)
            least, best = found["floor"], min(found[name] for name in names)
            times = "".join(f"{found[name] / least:9.2f}" for name in names)
            picked = f"{find_pick(own):9}{found['own'] / least:5.2f} {found['own'] / best:11.2f}"
            print(f"{nodes:5} {share:6.0%} {least:9.2f}{times}  {picked}", flush=True)


if __name__ == "__main__":
    main()
