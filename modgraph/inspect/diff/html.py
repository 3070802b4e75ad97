"""A comparison as a page: both graphs side by side with marked nodes, and all numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from modgraph.diagnostics import Source
from modgraph.inspect.cost import COUNTS
from modgraph.inspect.diff.architecture_diff import Comparison, Fate
from modgraph.inspect.diff.graph_diff import AXIS, LABEL, WEIGHTS
from modgraph.inspect.diff.plan import build_plan
from modgraph.inspect.diff.runs_sections import sections_of_runs
from modgraph.inspect.diff.text import find_moves_of, lines_of, summary
from modgraph.inspect.diff.words import describe_node, details, format_place
from modgraph.inspect.page.content import Content, Kind, Mark, Pane, Section, Table, Text
from modgraph.inspect.page.document import page_of
from modgraph.inspect.scene import scene_of
from modgraph.inspect.scene.build import find_ids_of_nodes

Marks = dict[str, Mark]
Sources = tuple[Source | None, Source | None]


def write_html(found: Comparison, sources: Sources) -> str:
    """The page; `sources` are the texts to which the spans of both graphs refer."""
    paths = [PurePath(os.path.abspath(side.path)).parts for side in (found.before, found.after)]  # noqa: PTH100
    # as few parts of the paths as distinguish them, so that a page names no folder above
    most = max(map(len, paths))
    count = next((count for count in range(1, most) if paths[0][-count:] != paths[1][-count:]), 1)
    first, second = ("/".join(path[-count:]) for path in paths)
    labels = f"before: {first} ({found.before.kind})", f"after: {second} ({found.after.kind})"
    panes = build_panes(found, sources, labels)
    return page_of(f"{first} → {second}", panes, [*_sections(found)], build_plan(found, panes[0].scene, panes[1].scene))


def build_panes(found: Comparison, sources: Sources, labels: Sequence[str]) -> list[Pane]:
    """Both graphs with labels and marked nodes."""
    panes = []
    for side, marks, source, label in zip((found.before, found.after), _marks(found), sources, labels, strict=True):
        scene = scene_of(side.graph)
        known = {box.id for box in scene.walk()}
        visible = {id: mark for id, mark in marks.items() if id in known}
        panes.append(Pane(scene, source, visible, label=label, notes=found.notes))
    return panes


def _marks(found: Comparison) -> tuple[Marks, Marks]:
    """The marks of the boxes of both graphs, without types that only follow."""
    diff = found.reported
    old, new = (dict(find_ids_of_nodes(side.graph)) for side in (found.before, found.after))
    before = {old[each.place]: Mark("removed", (describe_node(each),)) for each in diff.removed}
    after = {new[each.place]: Mark("added", (describe_node(each),)) for each in diff.added}
    lines: dict[tuple[str, str], tuple[Kind, tuple[str, ...]]] = {}
    for move in diff.moved:
        if move.kind not in (WEIGHTS, AXIS, LABEL):
            names = f"{format_place(move.before)} → {format_place(move.after)}"
            lines[move.before, move.after] = ("moved", (names,))
    for each in diff.changed:
        if not each.follows:
            _, moved = lines.get((each.before, each.after), ("changed", ()))
            lines[each.before, each.after] = ("changed", (*moved, *details(each.attributes)))
    for (first, second), (kind, words) in lines.items():
        before[old[first]] = Mark(kind, words, new[second])
        after[new[second]] = Mark(kind, words, old[first])
    return before, after


def _sections(found: Comparison) -> Iterator[Section]:
    diff, (before, after) = found.reported, _marks(found)
    parameters = [Text("; ".join(details(diff.model)))] if diff.model else []
    yield Section("In short", [Text(summary(found)), *parameters, *map(Text, found.notes)])
    yield from sections_of_runs(found)
    if lines := lines_of(found):
        words = ["; ".join(filter(None, (each.what, *each.details))) for each in lines]
        facts = [(each.sign, each.kind, format_place(each.place), each.count) for each in lines]
        rows = [(*each, said) for each, said in zip(facts, words, strict=True)]
        yield Section("What differs", [Table(("", "kind", "where", "×", "what"), rows)], [*after, *before])
    if moves := find_moves_of(diff.moved, found.keys):
        names = [(format_place(each.before), format_place(each.after), each.count) for each in moves]
        yield Section("What has moved", [Table(("from", "to", "nodes"), names)])
    if diff.doubts:
        doubts = [(each.kind, each.before, each.after, each.declaration) for each in diff.doubts]
        yield Section("What may be the same", [Table(("kind", "removed", "added", "if so, say"), doubts)])
    counts = [(name.replace("_", " "), *(getattr(cost, name) for cost in found.costs)) for name in COUNTS]
    costs = [(name, old, new, new - old) for name, old, new in counts]
    if found.runs is not None and found.runs.seconds is not None:
        old, new = found.runs.seconds
        costs.append(("seconds of training", old, new, new - old))
    yield Section("Costs", [Table(("", "before", "after", "difference"), costs)])
    fates = [(str(fate), len(weights), count) for fate, weights, count in found.fates()]
    others = [
        (
            str(each.fate),
            *(side.name if side else "" for side in (each.before, each.after)),
            ", ".join(each.list_reshaped_axes()),
        )
        for each in found.weights
        if each.fate is not Fate.KEPT
    ]
    learnt: list[Content] = [Table(("", "weights", "values"), fates)]
    learnt += [Table(("", "before", "after", "axes"), others)] if others else []
    if found.values.trained != "unknown":
        which = f", {found.values.reason}" if found.values.reason else ""
        learnt.append(Text(f"The values of the weights are {found.values.trained}{which}."))
    yield Section("Trained weights", learnt)
