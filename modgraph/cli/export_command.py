"""Export a run to a verified bundle for ONNX Runtime, or to a page that runs it in the browser."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from modgraph.cli.common import add_options, warn
from modgraph.cli.surroundings import imports_frozen
from modgraph.diagnostics import ModgraphError

if TYPE_CHECKING:
    from modgraph.backends.onnx import Report
    from modgraph.data import Arrays
    from modgraph.training.stored_run import StoredRun


USAGE = ("modgraph export runs/mine -o mine.onnx", "modgraph export runs/mine -o page --web")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN")
    parser.add_argument("-o", "--output", metavar="model.onnx|FOLDER", required=True)
    parser.add_argument("--routing", action="store_true", help="the routers' records as further outputs")
    parser.add_argument("--novelty", action="store_true", help="what routers record of novelty as further outputs")
    parser.add_argument("--int8", action="store_true", help="weights of eight bits; says what that changes")
    what = "only these outputs, and what they need; * stands for anything"
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME", help=what)
    what = "a folder with a page that runs the model in the browser, for any server"
    parser.add_argument("--web", action="store_true", help=what)
    what = "with --web, a page that publishes no examples of the test data"
    parser.add_argument("--no-examples", action="store_true", help=what)
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    with imports_frozen():
        from modgraph.training.stored_run import load_run

    if options.no_examples and not options.web:
        from modgraph.web.errors import NoPage

        raise ModgraphError([NoPage()])
    if options.web:
        from modgraph.web.write import check_page, write_page

        check_page(options.output, options.force)
    run = load_run(options.run_directory)
    data = run.test_data()
    if options.web:
        examples = {} if options.no_examples else data
        report, text = write_page(options.output, partial(_export, options, run, data), examples, options.force)
    else:
        report = _export(options, run, data, options.output)
        text = str(report)
    warn(report)
    print(text)
    return 0


def _export(options: argparse.Namespace, run: StoredRun, data: Mapping[str, Arrays], path: str | Path) -> Report:
    """The bundle of a run, written to a path, with the routing if it is for a page; with rounded weights each split is
    a test of what they change."""
    with imports_frozen("onnxscript"):
        from modgraph.backends.onnx import Test, export
        from modgraph.backends.onnx.trace import start_up
        from modgraph.data.batches import EXAMPLES

        start_up()

    tests: dict[str, Test] = {}
    if options.int8:
        from modgraph.training.bundle_metrics import metrics_of_outputs

        splits = {split: arrays.read(slice(None)) for split, arrays in data.items()}
        tests = {
            split: Test(rows, partial(metrics_of_outputs, graph=run.graph, rows=rows)) for split, rows in splits.items()
        }
    first = next(iter(data.values()), None)
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
