"""Export a trained run to a verified bundle for ONNX Runtime."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from modgraph.cli.common import add_force
from modgraph.diagnostics import render_all

if TYPE_CHECKING:
    from modgraph.backends.onnx import Test
    from modgraph.data import Arrays
    from modgraph.ir import Graph


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    parser.add_argument("-o", "--output", metavar="model.onnx", required=True)
    parser.add_argument("--routing", action="store_true", help="the routers' records as further outputs")
    parser.add_argument("--novelty", action="store_true", help="what routers record of novelty as further outputs")
    parser.add_argument("--int8", action="store_true", help="weights of eight bits; says what that changes")
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="these outputs alone, and what they need; * stands for anything",
    )
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    from modgraph.backends.onnx import export
    from modgraph.data.batches import EXAMPLES
    from modgraph.training import load_run

    run = load_run(options.run_directory)
    data = run.test_data()
    first = next(iter(data.values()), None)
    tests = {split: _test(run.graph, arrays) for split, arrays in data.items()} if options.int8 else {}
    report = export(
        run.model(),
        options.output,
        routing=options.routing,
        novelty=options.novelty,
        int8=options.int8,
        only=options.only,
        examples=None if first is None else first.read(slice(EXAMPLES)),
        tests=tests,
        description=run.description(),
        force=options.force,
    )
    if report.warnings:
        print(render_all(report.warnings), file=sys.stderr)
    print(report)
    return 0


def _test(graph: Graph, arrays: Arrays) -> Test:
    """A split to measure on what rounded weights change."""
    from modgraph.backends.onnx import Test
    from modgraph.training.bundle_metrics import metrics_of_outputs

    rows = arrays.read(slice(None))
    return Test(rows, partial(metrics_of_outputs, graph=graph, rows=rows))
