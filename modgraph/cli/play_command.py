"""Write the playground: an editor for specs in the browser, as files for any static server."""

from __future__ import annotations

import argparse
from pathlib import Path

from modgraph.cli.common import add_options, warn

USAGE = (
    "modgraph play -o playground",
    "modgraph play mine.mod -o playground",
    "modgraph play -o playground --with runs/mine",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    what = "a spec to open with its recipe and imports; it may have mistakes (one that comes with modgraph)"
    parser.add_argument("spec", metavar="SPEC", nargs="?", help=what)
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="the folder to write")
    what = (
        "a run's folder, a page of export --web, or a bundle of SPEC, whose model the playground runs; may be repeated"
    )
    parser.add_argument("--with", dest="models", action="append", default=[], metavar="RUN|PAGE|BUNDLE", help=what)
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    from modgraph.play.write import write_playground

    asked = {"force": options.force, "export_run": _export_run}
    print(write_playground(options.output, options.spec, options.models, **asked))
    return 0


def _export_run(path: Path, folder: Path) -> None:
    """Write the page of a run. Raises `ModgraphError`."""
    from modgraph.api.run import load_run
    from modgraph.api.web_page import write_page_of_run

    report, _ = write_page_of_run(load_run(path), folder)
    warn(report)
