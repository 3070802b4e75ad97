"""Give specs the one layout; with --check only say which lack it."""

from __future__ import annotations

import argparse
import sys

from modgraph.diagnostics import ModgraphError, Report
from modgraph.files import write_atomically
from modgraph.syntax import read
from modgraph.syntax.format import format_source


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", nargs="+", metavar="SPEC")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file is not in the layout")


def run(options: argparse.Namespace) -> int:
    """Every file is read before the first is written, so that a mistake in one leaves all as they are."""
    report = Report()
    changed = {path: text for path in options.specs if (text := _reformatted(path, report)) is not None}
    if report.errors:
        raise ModgraphError(report.diagnostics)
    for path, text in changed.items():
        if options.check:
            print(f"{path} is not in the layout: modgraph fmt {path}", file=sys.stderr)
        else:
            write_atomically(path, text.encode())
    return 1 if options.check and changed else 0


def _reformatted(path: str, report: Report) -> str | None:
    """The text a file should have, or None if it has it (or cannot be read, which is reported)."""
    source = read(path, report)
    text = format_source(source, report) if source is not None else None
    return text if source is not None and text != source.text else None
