"""Report every mistake of a spec and of its recipe."""

from __future__ import annotations

import argparse
import json
import sys

from modgraph.checking import Checked, check_spec
from modgraph.cli.common import add_options, read_overrides
from modgraph.declare.words import format_count
from modgraph.diagnostics import Diagnostic, render_all

USAGE = ("modgraph check mine.mod", "modgraph check mine.mod -s experts=8 -s train.epochs=3")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a spec (.mod)")
    parser.add_argument("--recipe", metavar="FILE", help="a recipe to check with each (the YAML file next to it)")
    add_options(parser, "set")
    parser.add_argument("--json", action="store_true", help="messages as JSON on stdout")


def run(options: argparse.Namespace) -> int:
    found: list[Diagnostic] = []
    for path in options.specs:
        checked = check_spec(path, read_overrides(options.set, path), options.recipe)
        found += checked.diagnostics
        if not options.json:
            _announce_definitions(path, checked)
    if options.json:
        print(json.dumps([diagnostic.as_json() for diagnostic in found], indent=2))
    elif printed := [each for each in found if each.severity == "error" or not options.quiet]:
        print(render_all(printed), file=sys.stderr)
    return 1 if any(diagnostic.severity == "error" for diagnostic in found) else 0


def _announce_definitions(path: str, checked: Checked) -> None:
    """Say what was checked of a file of definitions without a model."""
    file = checked.file
    if file is not None and not file.models and not checked.has_errors and checked.recipe is None:
        defined = format_count(len(file.blocks), "block")
        defined += f" and {format_count(len(file.routers), 'router')}" if file.routers else ""
        print(f"{path}: ok: the names and arguments of {defined}; a use decides their shapes")
