"""Compare two architectures (specs, runs, checkpoints, bundles), and all that two runs recorded."""

from __future__ import annotations

import argparse
import difflib
import os
import sys

from modgraph_runtime.streams import allow_colours

from modgraph.cli.common import SETTING, add_options, read_lengths, read_overrides, warn
from modgraph.diagnostics import Diagnostic, ModgraphError, Report, render_all
from modgraph.differences import differences
from modgraph.files import refuse_foreign, write_output
from modgraph.inspect.diff import as_json, text_of
from modgraph.store.architecture import Kind, find_kind, read_architecture
from modgraph.store.records import json_text
from modgraph.syntax import read

SAME, DIFFERENT = 0, 2


class TooFew(Diagnostic, code="MG820"):
    """`diff` compares two architectures: specs, runs, checkpoints or bundles, which may be the same spec twice."""

    message = "diff needs two architectures"
    help = "for example: modgraph diff net.mod net.mod --set-after k=2"


class NotFromGit(Diagnostic, code="MG821"):
    """Git calls `diff --git` as an external diff, with the path of the file, then a file, a hash and a mode for each of
    two versions."""

    message = "--git needs the seven arguments of a git external diff, not {count}"
    help = "let git call it: git config diff.modgraph.command 'modgraph diff --git'"


USAGE = ("modgraph diff mine.mod mine.mod --set-after experts=8",)


def arguments(parser: argparse.ArgumentParser) -> None:
    what = "a spec, a run's folder, a checkpoint, a graph (.json) or a bundle"
    parser.add_argument("before", metavar="A", nargs="?", help=what)
    parser.add_argument("after", metavar="B", nargs="?", help="the same")
    add_options(parser, "set")
    for side, which in (("before", "A"), ("after", "B")):
        what = f"set a parameter of {which} only, after those of -s"
        parser.add_argument(f"--set-{side}", **SETTING, help=what)
    add_options(parser, "length", "json")
    parser.add_argument("--html", metavar="FILE", help="write a page with both graphs side by side")
    add_options(parser, "force")
    parser.add_argument("--git", nargs="+", metavar="WORD", help="the arguments of an external diff of git")


def run(options: argparse.Namespace) -> int:
    if options.git:
        print(_text_for_git(options.git))
        return SAME  # git stops at a difference in the exit code
    if options.after is None:
        raise ModgraphError([TooFew()])
    if options.html:
        refuse_foreign(options.html, force=options.force)
    common, paths = read_overrides(options.set), (options.before, options.after)
    specs = [find_kind(path) is Kind.SPEC for path in paths]
    own = [read_overrides(options.set_before), read_overrides(options.set_after)]
    own = [{**(common if spec or not any(specs) else {}), **given} for spec, given in zip(specs, own, strict=True)]
    before, after = (read_architecture(path, given) for path, given in zip(paths, own, strict=True))
    for each in {each.warnings: each for each in (before, after)}.values():
        warn(each)
    found = differences(before, after, read_lengths(options.length))
    if options.html:
        from modgraph.inspect.diff.html import write_html

        write_output(options.html, write_html(found, (before.source, after.source)).encode(), options.force)
    print(json_text(as_json(found), indent=2) if options.json else text_of(found, _has_colours()))
    return DIFFERENT if found.is_different else SAME


def _text_for_git(words: list[str]) -> str:
    """What `git diff` shows of a spec: of a file that is not merged nothing, of one that has one version or no
    architecture its text. What both versions import is read from the working tree."""
    if len(words) == 1:
        return f"{words[0]} (not merged)"
    if len(words) < 7:
        raise ModgraphError([NotFromGit(count=len(words))])
    path, before, _, _, after, _, _, *renamed = words
    files, paths = (before, after), (path, renamed[0] if renamed else path)
    if after == os.devnull:
        heading = f"{paths[0]} (deleted)"
    elif before == os.devnull:
        heading = f"{paths[1]} (new)"
    else:
        try:
            old, new = (read_architecture(file, known_as=name) for file, name in zip(files, paths, strict=True))
            return text_of(differences(old, new), _has_colours("GIT_PAGER_IN_USE" in os.environ)) + "\n"
        except ModgraphError as error:
            heading = "not architectures, so compared as texts:\n" + render_all(error.diagnostics)
    sources = [None if file == os.devnull else read(file, Report()) for file in files]
    old_text, new_text = ([] if source is None else source.text.splitlines() for source in sources)
    return "\n".join([heading, *difflib.unified_diff(old_text, new_text, *paths, lineterm="")])


def _has_colours(in_pager: bool = False) -> bool:
    """Colours on a terminal, but for who wants none (https://no-color.org)."""
    if not (sys.stdout.isatty() or in_pager) or os.environ.get("NO_COLOR"):
        return False
    allow_colours()
    return True
