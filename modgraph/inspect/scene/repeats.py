"""Equal repetitions, found by content: `blocks.0` to `blocks.7` are drawn once, with their count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from modgraph.inspect.scene.nesting import group_of
from modgraph.inspect.scene.values import Box, Edge

LONGEST_PERIOD = 8


def folded(boxes: Sequence[Box], edges: Iterable[Edge]) -> tuple[Box, ...]:
    """Boxes whose numbered children that are alike stand in repeats."""
    into: dict[str, list[Edge]] = {}
    for edge in edges:
        into.setdefault(edge.target, []).append(edge)
    return tuple(_folded(box, into) for box in boxes)


def _folded(box: Box, into: dict[str, list[Edge]]) -> Box:
    if not box.children:
        return box
    children = tuple(_folded(child, into) for child in box.children)
    if box.kind != "block" or not all(_number(child).isdecimal() for child in children):
        return replace(box, children=children)
    runs = _runs([_content(child, box, into) for child in children])
    children = tuple(replace(child, label=f"{box.label}.{child.label}") for child in children)
    if len(runs) == 1 and runs[0].count > 1:
        return _repeat(children, runs[0], replace(box, children=()))
    inner = tuple(each for run in runs for each in _drawn(children, run, box))
    return replace(box, children=inner)


def _number(child: Box) -> str:
    """The index that a child of a numbered group begins with."""
    return child.label.partition(".")[0]


class Run:
    """Children `start` to `start + period · count`, each alike that of one period before."""

    def __init__(self, start: int, period: int, count: int) -> None:
        self.start, self.period, self.count = start, period, count

    @property
    def end(self) -> int:
        return self.start + self.period * self.count


def _runs(contents: Sequence[object]) -> list[Run]:
    """The runs of a sequence, the longest first found from the left; what repeats nothing is one of its own."""
    found, at = [], 0
    while at < len(contents):
        candidates = [Run(at, period, _count(contents, at, period)) for period in range(1, LONGEST_PERIOD + 1)]
        best = max(candidates, key=lambda run: (run.end if run.count > 1 else 0, -run.period))
        found.append(best if best.count > 1 else Run(at, 1, 1))
        at = found[-1].end
    return found


def _count(contents: Sequence[object], start: int, period: int) -> int:
    """How often what stands at `start` is repeated at once."""
    at = start + period
    while at < len(contents) and contents[at] == contents[at - period]:
        at += 1
    return max(1, (at - start) // period)


def _drawn(children: Sequence[Box], run: Run, group: Box) -> tuple[Box, ...]:
    if run.count == 1:
        return tuple(children[run.start : run.end])
    first, last = (children[at].label.removeprefix(f"{group.label}.") for at in (run.start, run.end - 1))
    name = f"{first.partition('.')[0]}-{last.partition('.')[0]}"
    return (_repeat(children, run, group_of(f"{group.id}.{name}", f"{group.label}.{name}", ())),)


def _repeat(children: Sequence[Box], run: Run, box: Box) -> Box:
    inner = children[run.start : run.end]
    first = inner[: run.period]
    marked = [
        child if at < run.period else replace(child, alike=first[at % run.period].id) for at, child in enumerate(inner)
    ]
    group = group_of(box.id, box.label, tuple(marked))
    return replace(group, kind="repeat", count=run.count, period=run.period)


# ------------------------------------------------------------ content


def _content(child: Box, parent: Box, into: dict[str, list[Edge]]) -> str:
    """A text of what a child holds, but for its index: its boxes, and the edges into them."""
    prefix = f"{parent.id}.{_number(child)}"
    boxes = {box.id: at for at, box in enumerate(child.walk())}
    parts = []
    for box in child.walk():
        edges = [
            (edge.kind, edge.slot, edge.short, _source(edge.source, boxes, parent.id, prefix))
            for edge in into.get(box.id, ())
        ]
        facts = (box.kind, box.label.removeprefix(_number(child)) if box is child else box.label, box.detail, box.types)
        content = (facts, box.settings, box.weights, box.records, box.notes, box.count, edges)
        parts.append(repr(content).replace(f"{prefix}.", "."))
    return "\n".join(parts)


def _source(source: str, boxes: dict[str, int], parent: str, prefix: str) -> int | str:
    """Where an edge comes from: a box of the same repetition by its place, the one before, or a place elsewhere."""
    if source in boxes:
        return boxes[source]
    if not source.startswith(f"{parent}."):
        return "before"
    number = source[len(parent) + 1 :].partition(".")[0]
    distance = int(prefix.rpartition(".")[2]) - int(number) if number.isdecimal() else 0
    return "before" if distance == 1 else f"{distance} before"
