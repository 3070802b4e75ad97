"""Export a run to a verified bundle for ONNX Runtime, or to a page that runs it in the browser."""

from __future__ import annotations

import argparse

from modgraph.cli.common import add_options, warn
from modgraph.cli.surroundings import imports_frozen
from modgraph.diagnostics import ModgraphError

USAGE = (
    "modgraph export runs/mine -o mine.onnx",
    "modgraph export runs/mine -o mine.onnx --stepwise",
    "modgraph export runs/mine -o page --web",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", metavar="RUN", help="a run's folder")
    parser.add_argument("-o", "--output", metavar="model.onnx|FOLDER", required=True, help="where to write it")
    parser.add_argument("--routing", action="store_true", help="routers' records as further outputs")
    parser.add_argument("--novelty", action="store_true", help="routers' records of novelty as further outputs")
    parser.add_argument("--int8", action="store_true", help="weights of eight bits, with a report of the differences")
    what = "tokens one after another, with caches in and out: to continue texts"
    parser.add_argument("--stepwise", action="store_true", help=what)
    what = "only these outputs; * matches anything"
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME", help=what)
    what = "a folder with a page that runs the model in the browser, for any server"
    parser.add_argument("--web", action="store_true", help=what)
    what = "with --web, a page without examples of the test data"
    parser.add_argument("--no-examples", action="store_true", help=what)
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    with imports_frozen():
        from modgraph.api.run import load_run

    if options.no_examples and not options.web:
        from modgraph.web.errors import NoPage

        raise ModgraphError([NoPage()])
    if options.web:
        from modgraph.web.write import check_page

        check_page(options.output, options.force)
    run = load_run(options.run_directory)
    with imports_frozen("onnxscript"):
        from modgraph.backends.onnx.trace import start_up

        start_up()
    names = ("routing", "novelty", "int8", "stepwise", "only", "force")
    asked = {name: getattr(options, name) for name in names}
    if options.web:
        from modgraph.api.web_page import write_page_of_run

        report, text = write_page_of_run(run, options.output, **asked, examples=not options.no_examples)
    else:
        report = run.export(options.output, **asked)
        text = str(report)
    warn(report)
    if not options.quiet:
        print(text)
    return 0
