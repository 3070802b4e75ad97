"""Compare two architectures: specs, runs, checkpoints or bundles, in any mix."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from modgraph_runtime.streams import allow_colours

from modgraph.cli.common import SETTING, add_options, read_lengths, read_overrides, warn
from modgraph.diagnostics import Diagnostic, ModgraphError, Report, render_all
from modgraph.files import refuse_foreign, write_output
from modgraph.inspect.diff import Comparison, Fate, Side, Weight, as_json, compared, text_of
from modgraph.inspect.diff.comparison import Values
from modgraph.ir import Graph, weights_of
from modgraph.passes import apply_passes, pipeline_behind
from modgraph.store.opened import Kind, Opened, kind_of, opened
from modgraph.store.records import json_text
from modgraph.syntax import read

if TYPE_CHECKING:
    from numpy import ndarray

SAME, DIFFERENT = 0, 2


class TooFew(Diagnostic, code="MG820"):
    """`diff` compares two architectures: specs, runs, checkpoints or bundles, which may be the same spec twice."""

    message = "two architectures are compared, and fewer are given"
    help = "for example: modgraph diff net.mod net.mod --set-after k=2"


class NotFromGit(Diagnostic, code="MG821"):
    """`diff --git` is for git, which calls it with the words of an external diff: the path of the file, then a file, a
    hash and a mode for each of two versions."""

    message = "--git takes the words that git gives an external diff, and these are {count}"
    help = "let git call it: git config diff.modgraph.command 'modgraph diff --git'"


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
    parser.add_argument("--git", nargs="+", metavar="WORD", help="what git gives an external diff: see docs/diff.md")


def run(options: argparse.Namespace) -> int:
    if options.git:
        print(_text_for_git(options.git))
        return SAME  # git stops at a difference that is told by the exit code
    if options.after is None:
        raise ModgraphError([TooFew()])
    if options.html:
        refuse_foreign(options.html, force=options.force)
    common, paths = read_overrides(options.set), (options.before, options.after)
    specs = [kind_of(path) is Kind.SPEC for path in paths]
    own = [read_overrides(options.set_before), read_overrides(options.set_after)]
    own = [{**(common if spec or not any(specs) else {}), **given} for spec, given in zip(specs, own, strict=True)]
    before, after = (opened(path, given) for path, given in zip(paths, own, strict=True))
    for each in {each.warnings: each for each in (before, after)}.values():
        warn(each)
    found = comparison(before, after, read_lengths(options.length))
    if options.html:
        from modgraph.inspect.diff.html import html_of

        write_output(options.html, html_of(found, (before.source, after.source)).encode(), options.force)
    print(json_text(as_json(found), indent=2) if options.json else text_of(found, _has_colours()))
    return DIFFERENT if found.is_different else SAME


def comparison(before: Opened, after: Opened, lengths: Mapping[str, int]) -> Comparison:
    """Two architectures beside each other. Raises `ModgraphError`.

    A bundle holds the graph of inference: what is compared with one is brought there first.
    """
    sides, notes = [], []
    for each, other in ((before, after), (after, before)):
        graph = each.graph
        if other.kind is Kind.BUNDLE and each.kind is not Kind.BUNDLE:
            graph = _to_inference(each.graph, other)
            also = "".join(f", nor {name}" for name in _find_omissions(other) if name in each.graph.outputs)
            lacks = f"{also}, which the bundle leaves out" if also else ""
            notes.append(f"the {each.kind} is compared as it is exported, without what only training needs{lacks}")
        sides.append(Side(str(each.path), each.kind, graph))
    found = compared(sides[0], sides[1], after.moved, lengths, tuple(notes))
    return replace(found, values=_values_of(before, after, found.weights))


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
            old, new = (opened(file, known_as=name) for file, name in zip(files, paths, strict=True))
            return text_of(comparison(old, new, {}), _has_colours("GIT_PAGER_IN_USE" in os.environ)) + "\n"
        except ModgraphError as error:
            heading = "no architectures to compare, so here are the texts:\n" + render_all(error.diagnostics)
    sources = [None if file == os.devnull else read(file, Report()) for file in files]
    old_text, new_text = ([] if source is None else source.text.splitlines() for source in sources)
    return "\n".join([heading, *difflib.unified_diff(old_text, new_text, *paths, lineterm="")])


def _has_colours(in_pager: bool = False) -> bool:
    """Colours on a terminal, but for who wants none (https://no-color.org)."""
    if not (sys.stdout.isatty() or in_pager) or os.environ.get("NO_COLOR"):
        return False
    allow_colours()
    return True


NONE_YET = Values(reason="a run has no checkpoint yet")


def _values_of(before: Opened, after: Opened, weights: tuple[Weight, ...]) -> Values:
    """Of runs and checkpoints name by name, of those that have grown the old part; where one is a bundle, which has a
    hash of its weights, as a whole. Specs and graphs have none. Raises `ModgraphError`."""
    kinds = {before.kind, after.kind}
    if kinds & {Kind.SPEC, Kind.GRAPH}:
        return Values()
    if Kind.BUNDLE in kinds:
        hashes = [_hash_of(each, other) for each, other in ((before, after), (after, before))]
        if None in hashes:
            return NONE_YET
        return Values("equal" if hashes[0] == hashes[1] else "different")
    old, new = _weights_of(before), _weights_of(after)
    if old is None or new is None:
        return NONE_YET
    both = [(each.fate, each.before.name, each.after.name) for each in weights if each.before and each.after]
    kept = [(name, other) for fate, name, other in both if fate is not Fate.RESHAPED]
    different = tuple(other for name, other in kept if not _are_equal(old[name], new[other]))
    reshaped = ((other, old[name], new[other]) for fate, name, other in both if fate is Fate.RESHAPED)
    longer = tuple(other for other, was, now in reshaped if _are_equal(was, now[tuple(map(slice, was.shape))]))
    are_different = different or len(kept) < len(weights)
    return Values("different" if are_different else "equal", len(kept) - len(different), different, longer)


def _weights_of(found: Opened) -> Mapping[str, ndarray] | None:
    """The weights of a checkpoint, or of that which a run ends with, None where it has none. Raises `ModgraphError`."""
    from modgraph.store.checkpoint_record import newest, weights_of_checkpoint

    if found.record is not None:
        return weights_of_checkpoint(found.path.with_suffix(".safetensors"), found.record)
    assert found.run is not None, "specs and bundles have no weights of their own"
    return newest(found.run.checkpoints, weights_of_checkpoint, best=True, origin=found.run.origin())


def _are_equal(old: ndarray, new: ndarray) -> bool:
    """Bit for bit, so that what is no number equals itself."""
    return old.dtype == new.dtype and old.shape == new.shape and old.tobytes() == new.tobytes()


def _hash_of(found: Opened, bundle: Opened) -> str | None:
    """The hash of the weights that a bundle such as the other has, None of a run without any."""
    if found.kind is Kind.BUNDLE:
        return str(found.manifest["weights"])
    from modgraph.store.checkpoint_record import hash_of_values

    weights, needed = _weights_of(found), [weight.name for weight in weights_of(_to_inference(found.graph, bundle))]
    return None if weights is None else hash_of_values({name: weights[name] for name in needed})


def _to_inference(graph: Graph, bundle: Opened) -> Graph:
    """A graph brought to what a bundle of it would hold that was exported as another was."""
    return apply_passes(graph, pipeline_behind(bundle.graph, _find_omissions(bundle)))


def _find_omissions(bundle: Opened) -> list[str]:
    return [*bundle.manifest.get("left_out", {}).get("outputs", ())]
