"""Rewrite specs in the one layout."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from modgraph.diagnostics import Diagnostic, ModgraphError, Report
from modgraph.files import write_atomically
from modgraph.syntax import read
from modgraph.syntax.format import format_source


class HasSeveralNames(Diagnostic, code="MG120"):
    """A file with several names (hard links) is not rewritten: the new layout would have only one of the names."""

    message = '"{path}" has hard links, which formatting would separate'
    help = "format a copy, or remove the other links"


USAGE = ("modgraph fmt mine.mod", "modgraph fmt --check mine.mod")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a spec (.mod)")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file needs formatting")


def run(options: argparse.Namespace) -> int:
    """Every file is read before the first is written, so that a mistake in one leaves all as they are."""
    report, changed = Report(), dict[str, str]()
    for path in options.specs:
        source = read(path, report)
        text = format_source(source, report) if source is not None else None
        if source is not None and text is not None and text != source.text:
            changed[path] = text
    if report.errors:
        raise ModgraphError(report.diagnostics)
    if options.check:
        for path in changed:
            print(f"{path} needs formatting: modgraph fmt {path}", file=sys.stderr)
        return 1 if changed else 0
    # a file is replaced whole, which would part its names
    if shared := [path for path in changed if Path(path).stat().st_nlink > 1]:
        raise ModgraphError(HasSeveralNames(path=path) for path in shared)
    for path, text in changed.items():
        write_atomically(path, text.encode())
    return 0
