"""A comparison as a page: both graphs side by side, what became of each node marked, and all in numbers beside."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from modgraph.diagnostics import Source
from modgraph.inspect.cost import COUNTS
from modgraph.inspect.diff.comparison import Comparison, Side
from modgraph.inspect.diff.level import Level
from modgraph.inspect.diff.renames import AXIS, LABEL, WEIGHTS
from modgraph.inspect.diff.text import lines_of, moves_in, reshaped_axes, summary
from modgraph.inspect.diff.weights import Fate, Weight
from modgraph.inspect.diff.words import details, shown_node, shown_place
from modgraph.inspect.page import Mark, MarkKind, Pane, Section, Table, Text, page_of
from modgraph.inspect.scene import scene_of
from modgraph.ir import PoolNode

Marks = dict[str, Mark]


def html_of(found: Comparison, sources: tuple[Source | None, Source | None]) -> str:
    """The page; `sources` are the texts that the nodes of both graphs have their places in."""
    first, second = short_names(found.before.path, found.after.path)
    before, after = _marks(found)
    labels = f"before: {first} ({found.before.kind})", f"after: {second} ({found.after.kind})"
    return page_of(f"{first} → {second}", panes_of(found, sources, labels), [*_sections(found, [*after, *before])])


def short_names(before: str, after: str) -> tuple[str, str]:
    """The last parts of two paths, as few as distinguish them, so that a page names no folder above."""
    first, second = (PurePath(os.path.abspath(path)).parts for path in (before, after))  # noqa: PTH100
    count = next((count for count in range(1, max(len(first), len(second))) if first[-count:] != second[-count:]), 1)
    return "/".join(first[-count:]), "/".join(second[-count:])


def panes_of(
    found: Comparison, sources: tuple[Source | None, Source | None], labels: Sequence[str]
) -> tuple[Pane, Pane]:
    """Both graphs, each with its label, what became of each node marked."""
    marks = _marks(found)

    def pane(at: int, side: Side) -> Pane:
        scene = scene_of(side.graph)
        known = {box.id for box in scene.walk()}
        drawn = {id: mark for id, mark in marks[at].items() if id in known}
        return Pane(scene, sources[at], drawn, label=labels[at], notes=found.notes)

    return pane(0, found.before), pane(1, found.after)


def _marks(found: Comparison) -> tuple[Marks, Marks]:
    """What became of the boxes of both graphs, types that only follow left out."""
    diff = found.told
    old, new = (dict(_ids(Level(side.graph))) for side in (found.before, found.after))
    before = {old[each.place]: Mark(MarkKind.REMOVED, (shown_node(each),)) for each in diff.removed}
    after = {new[each.place]: Mark(MarkKind.ADDED, (shown_node(each),)) for each in diff.added}
    lines: dict[tuple[str, str], tuple[MarkKind, tuple[str, ...]]] = {}
    for move in diff.moved:
        if move.kind not in (WEIGHTS, AXIS, LABEL):
            told = f"{shown_place(move.before)} → {shown_place(move.after)}"
            lines[move.before, move.after] = (MarkKind.MOVED, (told,))
    for each in diff.changed:
        if not each.follows:
            _, moved = lines.get((each.before, each.after), (MarkKind.CHANGED, ()))
            lines[each.before, each.after] = (MarkKind.CHANGED, (*moved, *details(each.attributes)))
    for (first, second), (kind, told_lines) in lines.items():
        before[old[first]] = Mark(kind, told_lines, new[second])
        after[new[second]] = Mark(kind, told_lines, old[first])
    return before, after


def _ids(level: Level, holder: str = "") -> Iterator[tuple[str, str]]:
    """The ids of boxes by the places of nodes: steps of scans have names of the whole model, modules their own."""
    for node in level.graph:
        yield level.place + node.name, holder + node.name
        for at, inner in enumerate(level.inner(node)):
            module = "" if isinstance(node, PoolNode) and node.alike else f"{at}/"
            yield from _ids(inner, f"{holder}{node.name}/{module}" if isinstance(node, PoolNode) else holder)


# ------------------------------------------------------------ beside the graphs


def _sections(found: Comparison, marked: list[str]) -> Iterator[Section]:
    diff = found.told
    yield Section("In short", [Text(summary(found)), *(Text(note) for note in found.notes)])
    if rows := [
        (line.sign, line.kind, shown_place(line.place), line.count, _told(line.what, line.details))
        for line in lines_of(found)
    ]:
        yield Section("What differs", [Table(("", "kind", "where", "×", "what"), rows)], marked)
    if moves := [(shown_place(each.before), shown_place(each.after), each.count) for each in moves_in(found)]:
        yield Section("What has moved", [Table(("from", "to", "nodes"), moves)])
    if diff.doubts:
        told = [(each.kind, each.before, each.after, each.declaration) for each in diff.doubts]
        yield Section("What may be the same", [Table(("kind", "removed", "added", "if so, say"), told)])
    yield Section("Costs", [Table(("", "before", "after", "difference"), [*_costs(found)])])
    yield Section("Trained weights", [*_weights(found)])


def _told(what: str, lines: tuple[str, ...]) -> str:
    return "; ".join([what] * bool(what) + [*lines])


def _costs(found: Comparison) -> Iterator[tuple[str, int, int, int]]:
    for name in COUNTS:
        before, after = getattr(found.costs.before, name), getattr(found.costs.after, name)
        yield name.replace("_", " "), before, after, after - before


def _weights(found: Comparison) -> Iterator[Table | Text]:
    fates = found.fates()
    rows = [(str(fate), len(each), sum(weight.count for weight in each)) for fate, each in fates.items()]
    yield Table(("", "weights", "values"), rows)
    others = [_weight(weight) for weight in found.weights if weight.fate is not Fate.KEPT]
    if others:
        yield Table(("", "before", "after", "axes"), others)
    if found.values.trained != "unknown":
        yield Text(f"The values of the weights are {found.values.trained}.")


def _weight(weight: Weight) -> tuple[str, str, str, str]:
    names = [each.name if each is not None else "" for each in (weight.before, weight.after)]
    axes = ", ".join(reshaped_axes(weight)) if weight.fate is Fate.RESHAPED else ""
    return str(weight.fate), names[0], names[1], axes
