"""Draw a spec, a run, a checkpoint or a bundle: a page to explore, or a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from modgraph.cli.common import add_force, add_overrides, overrides, warn
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.files import refuse_foreign, write_output
from modgraph.store.opened import Opened, opened


class UnknownDrawingSuffix(Diagnostic):
    """`visualize -o` writes what the suffix of the file says: a page (.html), a picture (.svg), a graph for graphviz
    (.dot) or for Mermaid (.mmd)."""

    code = "MG140"
    message = 'there is no drawing of the kind of "{path}"'
    help = "give a file that ends in .html, .svg, .dot or .mmd"


SUFFIXES = (".html", ".svg", ".dot", ".mmd")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("architecture", metavar="SPEC|RUN|CHECKPOINT|BUNDLE")
    add_overrides(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="a page (.html), a picture (.svg), graphviz (.dot), Mermaid (.mmd)"
    )
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    path = Path(options.output) if options.output else _default(options.architecture)
    if path.suffix.lower() not in SUFFIXES:
        raise ModgraphError([UnknownDrawingSuffix(path=options.output)])
    refuse_foreign(path, force=options.force)
    shown = opened(options.architecture, overrides(options))
    warn(shown)
    write_output(path, _content(shown, path.suffix.lower()).encode(), options.force)
    print(f"wrote {path}")
    return 0


def _default(architecture: str) -> Path:
    """A page in the current folder, called as the architecture."""
    return Path(f"{Path(architecture).resolve().stem or 'model'}.html")


def _content(shown: Opened, suffix: str) -> str:
    if suffix == ".html":
        from modgraph.pages import page_of_opened

        return page_of_opened(shown)
    from modgraph.inspect.drawing import dot_of, mermaid_of, svg_of
    from modgraph.inspect.scene import scene_of

    return {".svg": svg_of, ".dot": dot_of, ".mmd": mermaid_of}[suffix](scene_of(shown.graph))
