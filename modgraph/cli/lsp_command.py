"""Serve editors: messages, completion, hover, definition, layout."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec

from modgraph.diagnostics import Diagnostic, ModgraphError


class NeedsExtra(Diagnostic, code="MG119"):
    """A part of modgraph needs a package that an ordinary install leaves out."""

    message = "this needs the package {package}"
    help = "install it: pip install 'modgraph-compiler[{extra}]'"


USAGE = ("modgraph lsp",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "For editors: the extension under editors/vscode runs it."


def run(options: argparse.Namespace) -> int:
    if find_spec("pygls") is None:
        raise ModgraphError([NeedsExtra(package="pygls", extra="lsp")])
    from modgraph.lsp.server import server

    with open(os.dup(sys.stdout.fileno()), "wb") as out:  # noqa: PTH123 - pygls closes its output
        server.start_io(sys.stdin.buffer, out)
    return 0
