"""Draw an architecture: a page to explore, or a picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from modgraph.cli.common import ARCHITECTURE, add_options, open_architecture
from modgraph.drawings import Drawing, check_drawing, check_options
from modgraph.inspect.page.content import LEFT_OUT, Direction

USAGE = ("modgraph visualize mine.mod -o mine.svg",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "architecture",
        metavar="SPEC|RUN|CHECKPOINT|BUNDLE",
        help=ARCHITECTURE,
    )
    add_options(parser, "set")
    what = "a page (.html), a picture (.svg), graphviz (.dot), Mermaid (.mmd)"
    parser.add_argument("-o", "--output", metavar="FILE", help=what)
    fit = "unfold boxes so many levels deep; else as many as can be read at once, in .dot and .mmd all"
    parser.add_argument("--depth", type=int, metavar="N", help=fit)
    parser.add_argument("--direction", choices=get_args(Direction), default="down", help="where values go")
    parser.add_argument("--without", choices=LEFT_OUT, action="append", default=[], help="leave these out; repeatable")
    parser.add_argument("--lengths", action="store_true", help="draw edges from the lengths of axes too")
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    # without a path, a page in the current folder, called as the architecture
    path = Path(options.output or f"{Path(options.architecture).resolve().stem or 'model'}.html")
    wanted = check_options(options.depth, options.direction, options.without, options.lengths)
    check_drawing(path, options.force, wanted)
    print(f"wrote {Drawing(open_architecture(options.architecture, options), wanted).write(path, options.force)}")
    return 0
