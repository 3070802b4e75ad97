"""Report every mistake of a spec and of its recipe."""

from __future__ import annotations

import argparse
import json
import sys

from modgraph.cli.common import add_options, read_overrides
from modgraph.declare.words import format_count
from modgraph.diagnostics import Diagnostic, Report, render_all
from modgraph.elaboration import diagnose, elaborate_blocks
from modgraph.syntax import parse, read

USAGE = ("modgraph check mine.mod", "modgraph check mine.mod -s experts=8 -s train.epochs=3")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", nargs="+", metavar="SPEC")
    add_options(parser, "set")
    parser.add_argument("--json", action="store_true", help="messages as JSON on stdout")


def run(options: argparse.Namespace) -> int:
    values = read_overrides(options.set)
    found: list[Diagnostic] = []
    for path in options.specs:
        report = Report()
        source = read(path, report)
        file = parse(source, report) if source is not None else None
        if file is not None and (file.models or values):
            diagnose(file, values, report)
        elif file is not None:
            elaborate_blocks(file, report)
        found += report.list_diagnostics()
        if file is not None and not file.models and not report.errors and not options.json:
            defined = format_count(len(file.blocks), "block")
            defined += f" and {format_count(len(file.routers), 'router')}" if file.routers else ""
            print(f"{path}: ok: the names and arguments of {defined}; a use decides their shapes")
    if options.json:
        print(json.dumps([diagnostic.as_json() for diagnostic in found], indent=2))
    elif found:
        print(render_all(found), file=sys.stderr)
    return 1 if any(diagnostic.severity == "error" for diagnostic in found) else 0
