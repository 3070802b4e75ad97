"""Draw a spec, a run, a checkpoint or a bundle: a page to explore, or a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from modgraph.cli.common import add_options, open_architecture
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.files import refuse_foreign, write_output


class UnknownDrawingSuffix(Diagnostic, code="MG140"):
    """`visualize -o` writes what the suffix of the file says: a page (.html), a picture (.svg), a graph for graphviz
    (.dot) or for Mermaid (.mmd)."""

    message = 'there is no drawing of the kind of "{path}"'
    help = "give a file that ends in .html, .svg, .dot or .mmd"


SUFFIXES = (".html", ".svg", ".dot", ".mmd")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("architecture", metavar="SPEC|RUN|CHECKPOINT|BUNDLE")
    add_options(parser, "set")
    what = "a page (.html), a picture (.svg), graphviz (.dot), Mermaid (.mmd)"
    parser.add_argument("-o", "--output", metavar="FILE", help=what)
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    # without a path, a page in the current folder, called as the architecture
    path = Path(options.output or f"{Path(options.architecture).resolve().stem or 'model'}.html")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ModgraphError([UnknownDrawingSuffix(path=options.output)])
    refuse_foreign(path, force=options.force)
    found = open_architecture(options.architecture, options)
    if suffix == ".html":
        from modgraph.pages import page_of_opened

        content = page_of_opened(found)
    else:
        from modgraph.inspect.drawing import dot_of, mermaid_of, svg_of
        from modgraph.inspect.scene import scene_of

        content = {".svg": svg_of, ".dot": dot_of, ".mmd": mermaid_of}[suffix](scene_of(found.graph))
    write_output(path, content.encode(), options.force)
    print(f"wrote {path}")
    return 0
