"""Export a trained run to a verified bundle for ONNX Runtime."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from modgraph.diagnostics import render_all


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    parser.add_argument("-o", "--output", metavar="model.onnx", required=True)
    parser.add_argument("--routing", action="store_true", help="the routers' records as further outputs")
    parser.add_argument("--int8", action="store_true", help="weights of eight bits; says what that changes")


def run(options: argparse.Namespace) -> int:
    from modgraph.backends.onnx import Test, export
    from modgraph.training import load_run
    from modgraph.training.bundle_metrics import accuracies_of

    run = load_run(options.run_directory)
    data = run.test_data()
    tests = {
        split: Test(arrays.values, partial(accuracies_of, graph=run.graph, arrays=arrays))
        for split, arrays in data.items()
    }
    first = next(iter(tests.values()), None)
    report = export(
        run.model(),
        options.output,
        routing=options.routing,
        int8=options.int8,
        examples=None if first is None else first.inputs,
        tests=tests,
        description=run.description(),
    )
    if report.warnings:
        print(render_all(report.warnings), file=sys.stderr)
    print(report)
    return 0
