"""Draw an architecture: a page to explore, or a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from modgraph.cli.common import ARCHITECTURE, add_options, open_architecture
from modgraph.drawings import Drawing, check_drawing

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
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    # without a path, a page in the current folder, called as the architecture
    path = Path(options.output or f"{Path(options.architecture).resolve().stem or 'model'}.html")
    check_drawing(path, options.force)
    print(f"wrote {Drawing(open_architecture(options.architecture, options)).write(path, options.force)}")
    return 0
