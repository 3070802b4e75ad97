"""Compare two architectures: specs, runs, checkpoints or bundles, in any mix."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import replace

from modgraph_runtime.streams import allow_colours

from modgraph.cli.common import (
    add_force,
    add_json,
    add_lengths,
    add_overrides,
    overrides,
    read_lengths,
    read_overrides,
    warn,
)
from modgraph.cli.diff_git import Versions
from modgraph.cli.diff_values import as_in_bundle, left_out_of, values_of
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.files import refuse_foreign, write_output
from modgraph.inspect.diff import Comparison, Side, as_json, compared, text_of
from modgraph.store.opened import Kind, Opened, kind_of, opened
from modgraph.store.records import json_text

SAME, DIFFERENT = 0, 2


class TooFew(Diagnostic):
    """`diff` compares two architectures: specs, runs, checkpoints or bundles, which may be the same spec twice."""

    code = "MG820"
    message = "two architectures are compared, and fewer are given"
    help = "for example: modgraph diff net.mod net.mod --set-after k=2"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "before", metavar="A", nargs="?", help="a spec, a run's folder, a checkpoint, a graph (.json) or a bundle"
    )
    parser.add_argument("after", metavar="B", nargs="?", help="the same")
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
    add_json(parser)
    parser.add_argument("--html", metavar="FILE", help="write a page with both graphs side by side")
    add_force(parser)
    parser.add_argument("--git", nargs="+", metavar="WORD", help="what git gives an external diff: see docs/diff.md")


def run(options: argparse.Namespace) -> int:
    if options.git:
        return _run_for_git(options.git)
    if options.after is None:
        raise ModgraphError([TooFew()])
    if options.html:
        refuse_foreign(options.html, force=options.force)
    before, after = _both(options)
    found = comparison(before, after, read_lengths(options.length))
    if options.html:
        from modgraph.inspect.diff.html import html_of

        write_output(options.html, html_of(found, (before.source, after.source)).encode(), options.force)
    print(json_text(as_json(found), indent=2) if options.json else text_of(found, _has_colours()))
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
    sides = [_side(each, other if for_inference else None) for each, other in ((before, after), (after, before))]
    pairs = ((before, after), (after, before))
    notes = [_brought(each, other) for each, other in pairs if for_inference and each.kind is not Kind.BUNDLE]
    found = compared(sides[0], sides[1], after.moved, lengths, notes=tuple(notes))
    return replace(found, values=values_of(before, after, found.weights))


def _side(found: Opened, bundle: Opened | None) -> Side:
    """One of the two; what stands beside a bundle's graph is brought to what a bundle of it would tell."""
    if bundle is None or found.kind is Kind.BUNDLE:
        return Side(str(found.path), found.kind, found.graph)
    return Side(str(found.path), found.kind, as_in_bundle(found.graph, bundle))


def _brought(found: Opened, bundle: Opened) -> str:
    also = "".join(f", nor {name}" for name in left_out_of(bundle) if name in found.graph.outputs)
    lacks = f"{also}, which the bundle leaves out" if also else ""
    return f"the {found.kind} is compared as it is exported, without what only training needs{lacks}"


def _run_for_git(words: list[str]) -> int:
    """What `git diff` shows of a spec. Git stops at a difference that is told by the exit code: it is always 0."""
    versions = Versions.of(words)
    if versions is None:
        print(f"{words[0]} (not merged)")
    elif not versions.are_two:
        print(versions.only())
        print(versions.as_text(None))
    else:
        print(_told_to_git(versions))
    return SAME


def _told_to_git(versions: Versions) -> str:
    try:
        return (
            text_of(comparison(*versions.opened(), {}), _has_colours(in_pager="GIT_PAGER_IN_USE" in os.environ)) + "\n"
        )
    except ModgraphError as error:
        return versions.as_text(error)


def _has_colours(in_pager: bool = False) -> bool:
    """Colours on a terminal, but for who wants none (https://no-color.org)."""
    if not (sys.stdout.isatty() or in_pager) or os.environ.get("NO_COLOR"):
        return False
    allow_colours()
    return True
