"""Report every mistake of a spec and of its recipe."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from modgraph.cli.common import add_options, read_overrides
from modgraph.declare.words import format_count
from modgraph.diagnostics import Diagnostic, Report, render_all
from modgraph.elaboration import diagnose, elaborate_blocks
from modgraph.files import exists
from modgraph.log import log
from modgraph.store.run_directory import locate_recipe
from modgraph.syntax import ast, parse, read

USAGE = ("modgraph check mine.mod", "modgraph check mine.mod -s experts=8 -s train.epochs=3")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a spec (.mod)")
    parser.add_argument("--recipe", metavar="FILE", help="a recipe to check with each (the YAML file next to it)")
    add_options(parser, "set")
    parser.add_argument("--json", action="store_true", help="messages as JSON on stdout")


def run(options: argparse.Namespace) -> int:
    found: list[Diagnostic] = []
    for path in options.specs:
        values = read_overrides(options.set, path)
        report = Report()
        source = read(path, report)
        file = parse(source, report) if source is not None else None
        recipe = options.recipe
        if recipe is None and source is not None and (file is None or file.models):
            recipe = next(filter(exists, [locate_recipe(path)]), None)
        if source is None or recipe is None:
            found += _diagnose_spec(path, file, values, report, quiet=options.json)
            continue
        from modgraph.training.fit import diagnose_training
        from modgraph.training.recipe import key_overrides

        log.debug(f"checking {path} with its recipe {recipe}")
        found += diagnose_training(path, recipe, key_overrides(values))
    if options.json:
        print(json.dumps([diagnostic.as_json() for diagnostic in found], indent=2))
    elif printed := [each for each in found if each.severity == "error" or not options.quiet]:
        print(render_all(printed), file=sys.stderr)
    return 1 if any(diagnostic.severity == "error" for diagnostic in found) else 0


def _diagnose_spec(
    path: str, file: ast.File | None, values: Mapping[str, Any], report: Report, quiet: bool
) -> Sequence[Diagnostic]:
    """Every mistake of a spec without a recipe, or of a file of definitions without a model."""
    if file is not None and (file.models or values):
        diagnose(file, values, report)
    elif file is not None:
        elaborate_blocks(file, report)
    if file is not None and not file.models and not report.errors and not quiet:
        defined = format_count(len(file.blocks), "block")
        defined += f" and {format_count(len(file.routers), 'router')}" if file.routers else ""
        print(f"{path}: ok: the names and arguments of {defined}; a use decides their shapes")
    return report.list_diagnostics()
