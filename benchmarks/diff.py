"""Measures comparisons of graphs with 10,000 and 20,000 nodes: `python benchmarks/diff.py [--quick]`.

A stack of blocks is compared with three others: one with another setting in the middle, one with other names
throughout, and one with an additional block in front. The ratio of the two sizes shows whether the work is linear in
the graph.
"""

from __future__ import annotations

import argparse
import time

from options import parse_options

from modgraph import loads
from modgraph.inspect.diff import compare
from modgraph.ir import Graph

NODES_OF_A_BLOCK = 5


def stack(blocks: int, name: str = "blocks", width: int = 8, first: int = 0) -> Graph:
    """Make a model of so many residual blocks; `width` is that of the hidden layer in the middle one."""
    middle = blocks // 2
    return loads(
        f"""model stack(n={blocks}) {{
          input x: float[4]
          repeat {name}[i] in {first}..n {{
            if i == {middle} {{ x = x + (x -> layer_norm -> linear({width}) -> gelu -> linear(4)) }}
            else {{ x = x + (x -> layer_norm -> linear(8) -> gelu -> linear(4)) }}
          }}
          output x
        }}"""
    ).ir


def seconds(before: Graph, after: Graph) -> float:
    start = time.process_time()
    compare(before, after)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000, help="number of nodes of the smaller graph")
    options = parse_options(parser, nodes=500)
    sizes = (options.nodes, 2 * options.nodes)
    graphs = {size: stack(size // NODES_OF_A_BLOCK) for size in sizes}
    for what, other in {
        "the same": lambda blocks: stack(blocks),
        "one setting": lambda blocks: stack(blocks, width=16),
        "all names": lambda blocks: stack(blocks, "layers"),
        "one block less": lambda blocks: stack(blocks, first=1),
    }.items():
        taken = [seconds(graphs[size], other(size // NODES_OF_A_BLOCK)) for size in sizes]
        print(f"{what:15} {taken[0]:6.2f} s {taken[1]:6.2f} s, ratio {taken[1] / taken[0]:.2f}")


if __name__ == "__main__":
    main()
