"""Sections of a page on two runs, and on the manifests of two bundles: differences first, the rest folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modgraph.inspect.diff.architecture_diff import Comparison
from modgraph.inspect.diff.runs_diff import KeyChange, RunsCompared
from modgraph.inspect.diff.runs_text import SIDES, blocks_of, format_key, format_setting, summarize
from modgraph.inspect.page.content import Cell, Content, Fold, Section, Table, Text


def sections_of_runs(found: Comparison) -> Iterator[Section]:
    """Yield the sections of two runs, or of two bundles; none for anything else."""
    if found.runs is not None:
        yield Section("Runs", [*_compare(found.runs), *_list_same(found.runs)])
    if found.manifests:
        changed = [each for each in found.manifests if each.before != each.after]
        same = [each for each in found.manifests if each.before == each.after]
        table = Table(("key", *SIDES), [format_key(each) for each in changed])
        content: list[Content] = [table if changed else Text("The manifests are the same.")]
        yield Section("Manifests", [*content, *_fold_keys(same)])


def _compare(found: RunsCompared) -> Iterator[Content]:
    """Yield a table for each subject that differs."""
    blocks = [Table(header, rows) for header, rows in blocks_of(found)]
    yield from blocks
    if not blocks:
        yield Text(summarize(found))


def _list_same(found: RunsCompared) -> Iterator[Content]:
    """Yield what is the same, folded."""
    yield from _fold_keys(found.same_recipe)
    if found.same_data:
        yield from _fold(
            "splits with the same examples",
            ("split", "examples"),
            [(each.split, each.before) for each in found.same_data],
        )
    equal = [(each.metric, each.before) for each in found.metrics if each.before == each.after]
    if equal:
        yield from _fold("equal metrics", ("metric", "value"), equal)


def _fold_keys(same: Sequence[KeyChange]) -> Iterator[Content]:
    if same:
        yield from _fold("equal keys", ("key", "value"), [(each.key, format_setting(each.before)) for each in same])


def _fold(what: str, header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[Content]:
    yield Fold(f"{len(rows)} {what}", [Table(header, rows)])
