"""Compare two architectures: specs, runs or bundles, in any mix."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import replace

from modgraph.cli.common import add_overrides, overrides, read_overrides, warn
from modgraph.cli.diff_values import values_of
from modgraph.cli.lengths import add_lengths, read_lengths
from modgraph.inspect.diff import Comparison, Paint, Side, as_json, coloured, compared, plain, text_of
from modgraph.passes import INFERENCE, apply_passes
from modgraph.store.opened import Kind, Opened, kind_of, opened
from modgraph.store.records import json_text

SAME, DIFFERENT = 0, 2


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="a spec, a run's folder or a bundle")
    parser.add_argument("after", metavar="B", help="the same")
    add_overrides(parser)
    for side, which in (("before", "A"), ("after", "B")):
        parser.add_argument(
            f"--set-{side}",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"set a parameter of {which} alone, after those of -s",
        )
    add_lengths(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    found = comparison(*_both(options), read_lengths(options.length))
    print(json_text(as_json(found), indent=2) if options.json else text_of(found, _paint()))
    return DIFFERENT if found.is_different else SAME


def _both(options: argparse.Namespace) -> tuple[Opened, Opened]:
    """What stands at both paths; their warnings are printed. Raises `ModgraphError`."""
    common = overrides(options)
    specs = [kind_of(path) is Kind.SPEC for path in (options.before, options.after)]
    own = [read_overrides(options.set_before), read_overrides(options.set_after)]
    own = [{**(common if spec or not any(specs) else {}), **given} for spec, given in zip(specs, own, strict=True)]
    before, after = opened(options.before, own[0]), opened(options.after, own[1])
    for each in {each.warnings: each for each in (before, after)}.values():
        warn(each)
    return before, after


def comparison(before: Opened, after: Opened, lengths: Mapping[str, int]) -> Comparison:
    """Two architectures beside each other. Raises `ModgraphError`.

    A bundle holds the graph of inference: what is compared with one is brought there first.
    """
    for_inference = before.kind is not after.kind and Kind.BUNDLE in (before.kind, after.kind)
    sides = [_side(each, for_inference) for each in (before, after)]
    notes = [_brought(each) for each in (before, after) if for_inference and each.kind is not Kind.BUNDLE]
    found = compared(sides[0], sides[1], after.moved, lengths, notes=tuple(notes))
    return replace(found, values=values_of(before, after, found.weights))


def _side(found: Opened, for_inference: bool) -> Side:
    graph = apply_passes(found.graph, INFERENCE) if for_inference and found.kind is not Kind.BUNDLE else found.graph
    return Side(str(found.path), found.kind, graph)


def _brought(found: Opened) -> str:
    return f"the {found.kind} {found.path} is compared as it is exported, without what only training needs"


def _paint() -> Paint:
    """Colours on a terminal, but for who wants none (https://no-color.org)."""
    return coloured if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else plain
