"""Diagnose specs: exit code 0, or 1 with every mistake told."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from modgraph.cli.common import add_overrides, overrides
from modgraph.diagnostics import Diagnostic, ModgraphError, render_all
from modgraph.program import load


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", nargs="+", metavar="SPEC")
    add_overrides(parser)
    parser.add_argument("--json", action="store_true", help="messages as JSON on stdout")


def run(options: argparse.Namespace) -> int:
    values = overrides(options)
    found: list[Diagnostic] = []
    for path in options.specs:
        found += _diagnose(path, values)
    failed = any(diagnostic.severity == "error" for diagnostic in found)
    if options.json:
        print(json.dumps([diagnostic.as_json() for diagnostic in found], indent=2))
    elif found:
        print(render_all(found), file=sys.stderr)
    return 1 if failed else 0


def _diagnose(path: str, values: dict[str, Any]) -> list[Diagnostic]:
    try:
        return list(load(path, **values).warnings)
    except ModgraphError as error:
        return list(error.diagnostics)
