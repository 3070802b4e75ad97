"""Export a trained run to a verified bundle for ONNX Runtime, or with a page that runs it in the browser."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from modgraph.cli.common import add_force
from modgraph.cli.surroundings import imports_frozen
from modgraph.diagnostics import ModgraphError, render_all

if TYPE_CHECKING:
    from modgraph.backends.onnx import Report, Test
    from modgraph.data import Arrays
    from modgraph.ir import Graph
    from modgraph.training.stored_run import Run


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    parser.add_argument("-o", "--output", metavar="model.onnx|FOLDER", required=True)
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
    parser.add_argument(
        "--web", action="store_true", help="a folder with a page that runs the model in the browser, for any server"
    )
    parser.add_argument(
        "--no-examples", action="store_true", help="with --web, a page that publishes no examples of the test data"
    )
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    with imports_frozen():
        from modgraph.training import load_run

    if options.no_examples and not options.web:
        from modgraph.web.errors import NoPage

        raise ModgraphError([NoPage()])
    if options.web:
        from modgraph.web.site import check_site, write_site

        check_site(options.output, options.force)
    run = load_run(options.run_directory)
    data = run.test_data()
    if options.web:
        shown = {} if options.no_examples else data
        site = write_site(options.output, partial(_exported, options, run, data), shown, options.force)
        _tell(site.report, site)
    else:
        report = _exported(options, run, data, options.output)
        _tell(report, report)
    return 0


def _exported(options: argparse.Namespace, run: Run, data: Mapping[str, Arrays], path: str | Path) -> Report:
    """The bundle of a run, written to a path; of a page it tells the routing."""
    with imports_frozen("onnxscript"):
        from modgraph.backends.onnx import export
        from modgraph.backends.onnx.trace import start_up
        from modgraph.data.batches import EXAMPLES

        start_up()

    first = next(iter(data.values()), None)
    tests = {split: _test(run.graph, arrays) for split, arrays in data.items()} if options.int8 else {}
    return export(
        run.model(),
        path,
        routing=options.routing or options.web,
        novelty=options.novelty,
        int8=options.int8,
        only=options.only,
        examples=None if first is None else first.read(slice(EXAMPLES)),
        tests=tests,
        description=run.description(),
        force=options.force,
    )


def _tell(report: Report, account: object) -> None:
    if report.warnings:
        print(render_all(report.warnings), file=sys.stderr)
    print(account)


def _test(graph: Graph, arrays: Arrays) -> Test:
    """A split to measure on what rounded weights change."""
    from modgraph.backends.onnx import Test
    from modgraph.training.bundle_metrics import metrics_of_outputs

    rows = arrays.read(slice(None))
    return Test(rows, partial(metrics_of_outputs, graph=graph, rows=rows))
