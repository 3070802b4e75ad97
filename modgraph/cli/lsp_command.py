"""Serve editors: messages and fixes, completion, types and costs, rename, references, layout."""

from __future__ import annotations

import argparse
import os
import sys

from modgraph.extras import require

USAGE = ("modgraph lsp",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "For editors: the extension under editors/vscode runs it."


def run(options: argparse.Namespace) -> int:
    require("lsp", "modgraph lsp")
    from modgraph.lsp.server import server

    with open(os.dup(sys.stdout.fileno()), "wb") as out:  # noqa: PTH123 - pygls closes its output
        server.start_io(sys.stdin.buffer, out)
    return 0
