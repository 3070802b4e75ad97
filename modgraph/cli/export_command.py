"""Export a trained run to a verified bundle for ONNX Runtime."""

from __future__ import annotations

import argparse
import sys

from modgraph.diagnostics import render_all


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    parser.add_argument("-o", "--output", metavar="model.onnx", required=True)
    parser.add_argument("--routing", action="store_true", help="the routers' records as further outputs")


def run(options: argparse.Namespace) -> int:
    from modgraph.backends.onnx import export
    from modgraph.training import load_run
    from modgraph.training.evaluation import EXAMPLES

    run = load_run(options.run_directory)
    tests = next(iter(run.test_data().values()), None)
    report = export(
        run.model(),
        options.output,
        routing=options.routing,
        examples=None if tests is None else tests.read(slice(EXAMPLES)),
        description=run.description(),
    )
    if report.warnings:
        print(render_all(report.warnings), file=sys.stderr)
    print(report)
    return 0
