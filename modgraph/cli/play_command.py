"""Write the playground: an editor for specs in the browser, as files for any static server."""

from __future__ import annotations

import argparse

from modgraph.cli.common import add_options

USAGE = (
    "modgraph play -o playground",
    "modgraph play mine.mod -o playground",
    "modgraph play -o playground --with page",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    what = "a spec to open with its recipe and imports; it may have mistakes (one that comes with modgraph)"
    parser.add_argument("spec", metavar="SPEC", nargs="?", help=what)
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="the folder to write")
    what = "a folder of export --web, whose model the playground runs; may be repeated"
    parser.add_argument("--with", dest="pages", action="append", default=[], metavar="PAGE", help=what)
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    from modgraph.play.write import write_playground

    print(write_playground(options.output, options.spec, options.pages, options.force))
    return 0
